package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"spoolfs/fs"
	"spoolfs/publisher"
	"spoolfs/queue"
)

// status is .status/status.json. Keys are added later and never renamed.
type status struct {
	Version       string  `json:"version"`
	Mountpoint    string  `json:"mountpoint"`
	UptimeSeconds float64 `json:"uptime_seconds"`
	ConfigError   string  `json:"config_error"` // of the last reload; the configuration before it is in force

	Queue     queueStatus     `json:"queue"`     // of all routes
	Publisher publisherStatus `json:"publisher"` // of the root's route
	FS        fsStatus        `json:"fs"`
	Janitor   janitorStatus   `json:"janitor"`
	Keeper    keeperStatus    `json:"keeper"`
	Health    health          `json:"health"`

	Routes map[string]routeStatus `json:"routes"`

	details details // what the metrics have besides
}

// details are of the same moment as the status.
type details struct {
	syncs      queue.DurationStats
	routes     map[string]routeDetails
	operations map[string]queue.DurationStats // of the mount, by name
}

// messageCounts counts messages; ready, leased, delayed, dead and staged are
// disjoint.
type messageCounts struct {
	Ready              uint64  `json:"ready"`
	Leased             uint64  `json:"leased"`
	Delayed            uint64  `json:"delayed"`
	Dead               uint64  `json:"dead"`
	Partial            uint64  `json:"partial"` // files, not messages
	Staged             uint64  `json:"staged"`
	Bytes              uint64  `json:"bytes"`
	OldestReadySeconds float64 `json:"oldest_ready_seconds"`
	DroppedOldestTotal uint64  `json:"dropped_oldest_total"` // to make room for others
	DroppedNewestTotal uint64  `json:"dropped_newest_total"` // when they came, for want of room
	CoalescedTotal     uint64  `json:"coalesced_total"`      // replaced by later ones about the same
}

func countsOf(s queue.Stats) messageCounts {
	c := messageCounts{
		Ready: s.Ready, Leased: s.Leased, Delayed: s.Delayed, Dead: s.Dead, Partial: s.Partial, Staged: s.Staged, Bytes: s.Bytes,
		DroppedOldestTotal: s.DroppedOldest, DroppedNewestTotal: s.DroppedNewest, CoalescedTotal: s.Coalesced,
	}
	if !s.Oldest.IsZero() {
		c.OldestReadySeconds = seconds(time.Since(s.Oldest))
	}
	return c
}

// all is how many messages there are.
func (c messageCounts) all() uint64 {
	return c.Ready + c.Leased + c.Delayed + c.Dead + c.Partial + c.Staged
}

// queueStatus is the queue of all routes, and its store.
type queueStatus struct {
	messageCounts
	FreeBytes     uint64 `json:"free_bytes"`    // that the queue would still take
	FaultsTotal   uint64 `json:"faults_total"`  // the store failed and was opened again
	LateTotal     uint64 `json:"late_total"`    // messages that lost their place to later ones
	DamagedTotal  uint64 `json:"damaged_total"` // rows, blocks or files of it that could not be read
	MissingTotal  uint64 `json:"missing_total"` // messages that were in them
	LimitBytes    uint64 `json:"limit_bytes"`
	StoreBytes    uint64 `json:"store_bytes"`     // that the store takes on the disk
	DiskFreeBytes uint64 `json:"disk_free_bytes"` // of its file system
	Refusal       string `json:"refusal"`         // why nothing is taken from anybody; empty while it is
	RefusalText   string `json:"refusal_text"`    // for people
}

// What queueStatus.Refusal may be; also codes of problems.
const (
	refusedDisk   = "disk-full"
	refusedFull   = "queue-full"
	refusedFault  = "store-failed"
	refusedClosed = "store-closed"
)

type publisherStatus struct {
	State              string  `json:"state"`
	Broker             string  `json:"broker"`
	Exchange           string  `json:"exchange"`
	InFlight           int     `json:"in_flight"`
	ConfirmedTotal     uint64  `json:"confirmed_total"`
	ReturnedTotal      uint64  `json:"returned_total"`
	RejectedTotal      uint64  `json:"rejected_total"`
	InvalidTotal       uint64  `json:"invalid_total"`
	RequeuedTotal      uint64  `json:"requeued_total"`
	FollowedTotal      uint64  `json:"followed_total"` // handed to routes that follow
	SessionsTotal      uint64  `json:"sessions_total"`
	ReconnectsTotal    uint64  `json:"reconnects_total"` // sessions after a failure
	RefusedTotal       uint64  `json:"refused_total"`    // what they name is missing or not allowed
	ExpiredTotal       uint64  `json:"expired_total"`
	GivenUpTotal       uint64  `json:"given_up_total"`                      // refused as often as the configuration lets them be
	FailuresTotal      uint64  `json:"failures_total"`                      // attempts and sessions that failed
	Window             int     `json:"window"`                              // messages that may be in flight now
	PausedSeconds      float64 `json:"paused_seconds"`                      // left, because of a refusal
	ConnectedTo        string  `json:"connected_to"`                        // the broker of the last session
	TLSServerExpires   int64   `json:"tls_server_expiry_timestamp_seconds"` // 0: no certificate
	TLSClientExpires   int64   `json:"tls_client_expiry_timestamp_seconds"`
	LastError          string  `json:"last_error"`
	LastCause          string  `json:"last_cause"`           // its kind
	LastAdvice         string  `json:"last_advice"`          // what to do about it
	LastErrorSeconds   float64 `json:"last_error_seconds"`   // ago
	NextAttemptSeconds float64 `json:"next_attempt_seconds"` // while waiting
	AwaySeconds        float64 `json:"away_seconds"`         // since publishing began to fail; 0 while all is well
	StalledSeconds     float64 `json:"stalled_seconds"`      // for which a broker that is there took nothing
	RateLimited        bool    `json:"rate_limited"`         // by --rate
}

type fsStatus struct {
	OpenFiles             int    `json:"open_files"`
	HeldFiles             int    `json:"held_files"`
	BufferedBytes         int64  `json:"buffered_bytes"`
	IngestedFilesTotal    uint64 `json:"ingested_files_total"`
	IngestedMessagesTotal uint64 `json:"ingested_messages_total"`
	IngestedDeadTotal     uint64 `json:"ingested_dead_total"`
	IngestedPartialTotal  uint64 `json:"ingested_partial_total"`
	IngestedRepeatsTotal  uint64 `json:"ingested_repeats_total"`
	IngestErrorsTotal     uint64 `json:"ingest_errors_total"`
	UnknownEndingsTotal   uint64 `json:"unknown_endings_total"` // published, though their writer may have been killed
	PurgedTotal           uint64 `json:"purged_total"`          // messages that an operator removed
	RedrivenTotal         uint64 `json:"redriven_total"`        // messages that an operator made ready again
	Draining              bool   `json:"draining"`              // takes no new files
	PanicsTotal           uint64 `json:"panics_total"`
	RefusedRequestsTotal  uint64 `json:"refused_requests_total"` // opens and writes that got an error

	RefusedRequests map[string]uint64 `json:"refused_requests"` // the same by reason
}

// statusFiles are the files of .status.
func (d *daemon) statusFiles() []fs.StatusFile {
	keyValues := func(section func(status) any) func() []byte {
		return func() []byte { return keyValueLines(section(d.status())) }
	}
	return []fs.StatusFile{
		{Name: "summary", Content: func() []byte { return []byte(d.status().summary()) }},
		{Name: "status.json", Content: func() []byte { return jsonText(d.status()) }},
		{Name: "metrics", Content: d.metrics.text},
		{Name: "queue", Content: keyValues(func(s status) any { return s.Queue })},
		{Name: "publisher", Content: keyValues(func(s status) any { return s.Publisher })},
		{Name: "fs", Content: keyValues(func(s status) any { return s.FS })},
		{Name: "janitor", Content: keyValues(func(s status) any { return s.Janitor })},
		{Name: "keeper", Content: keyValues(func(s status) any { return s.Keeper })},
		d.importFile(),
		d.exportFile(),
		{Name: "config", Private: true, Content: func() []byte { return configLines(d.config(), d.config().origins, d.config().routes...) }},
		// What the log says of files names them.
		{Name: "jobs", Private: true, Content: d.jobs.text},
		{Name: "events", Private: true, Content: d.events.text},
	}
}

// status takes a snapshot of everything.
func (d *daemon) status() status { return d.monitor.judged(d.measure()) }

// measure is status without what only the monitor knows.
func (d *daemon) measure() status {
	f := d.fs.Stats()
	s := status{
		Version: version(), Mountpoint: d.flags.Mountpoint, ConfigError: d.configFault(),
		UptimeSeconds: seconds(time.Since(d.started)),
		Janitor:       d.janitorStatus(),
		Keeper:        d.keeperStatus(),
		FS: fsStatus{
			OpenFiles: f.OpenFiles, HeldFiles: f.HeldFiles, BufferedBytes: f.BufferedBytes,
			IngestedFilesTotal: f.IngestedFilesTotal, IngestedMessagesTotal: f.IngestedMessagesTotal,
			IngestedDeadTotal: f.IngestedDeadTotal, IngestErrorsTotal: f.IngestErrorsTotal,
			IngestedPartialTotal: f.IngestedPartialTotal, IngestedRepeatsTotal: f.IngestedRepeatsTotal, UnknownEndingsTotal: f.UnknownEndingsTotal,
			PurgedTotal: f.PurgedTotal, RedrivenTotal: f.RedrivenTotal, Draining: f.Draining,
			PanicsTotal: f.PanicsTotal, RefusedRequests: d.fs.Refused(),
		},
	}
	for _, n := range s.FS.RefusedRequests {
		s.FS.RefusedRequestsTotal += n
	}
	s.details.operations = d.fs.Operations()
	d.measureQueue(&s)
	d.measureRoutes(&s)
	return s
}

func (d *daemon) measureQueue(to *status) {
	s, err := d.queue.Stats()
	if err != nil {
		d.log.Error("stats", "error", err)
	}
	damage, store := d.queue.Damage(), d.queue.Store()
	q := queueStatus{
		messageCounts: countsOf(s),
		DamagedTotal:  damage.Damaged, MissingTotal: damage.Missing,
		FreeBytes: d.queue.Space().Free, FaultsTotal: store.FaultsTotal, LateTotal: store.LateTotal,
		LimitBytes: store.LimitBytes, StoreBytes: store.DiskBytes, DiskFreeBytes: store.DiskFreeBytes,
	}
	if q.Refusal = refusalCode(store.Refusal); q.Refusal != "" {
		q.RefusalText = store.Refusal.Error()
	}
	to.Queue, to.details.syncs = q, store.Syncs
}

func refusalCode(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, queue.ErrDiskFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return refusedDisk // a store that has failed for that alone, too
	case errors.Is(err, queue.ErrFull):
		return refusedFull
	case errors.Is(err, queue.ErrClosed):
		return refusedClosed
	}
	return refusedFault
}

// measure measures the publisher of a route.
func (r *routeParts) measure() (publisherStatus, routeDetails) {
	s, l := r.publisher.Stats(), r.live.Load()
	p := publisherStatus{
		State: string(s.State), Broker: l.flags.masked(), Exchange: l.flags.Exchange,
		InFlight: s.InFlight, ConfirmedTotal: s.ConfirmedTotal, ReturnedTotal: s.ReturnedTotal,
		RejectedTotal: s.RejectedTotal, InvalidTotal: s.InvalidTotal, RequeuedTotal: s.RequeuedTotal, FollowedTotal: s.FollowedTotal,
		SessionsTotal: s.SessionsTotal, LastError: s.LastError,
		RefusedTotal: s.RefusedTotal, ExpiredTotal: s.ExpiredTotal, GivenUpTotal: s.GivenUpTotal, FailuresTotal: s.FailuresTotal,
		Window: s.Window, PausedSeconds: max(0, seconds(time.Until(s.PausedUntil))),
		LastCause: string(s.LastCause), LastAdvice: s.LastAdvice,
		ReconnectsTotal: s.ReconnectsTotal, RateLimited: s.RateLimited,
	}
	if !s.AwaySince.IsZero() {
		p.AwaySeconds = seconds(time.Since(s.AwaySince))
	}
	link := l.brokers.Stats()
	p.ConnectedTo = link.Address
	p.TLSServerExpires, p.TLSClientExpires = timestamp(link.Expiry.Server), timestamp(link.Expiry.Client)
	if !s.LastErrorTime.IsZero() {
		p.LastErrorSeconds = seconds(time.Since(s.LastErrorTime))
	}
	if !s.NextAttempt.IsZero() {
		p.NextAttemptSeconds = max(0, seconds(time.Until(s.NextAttempt)))
	}
	return p, routeDetails{s.ConfirmDuration, s.Failures}
}

// timestamp is a time as Unix seconds; 0 if there is none.
func timestamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func jsonText(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return []byte(`{"error": "` + err.Error() + `"}` + "\n")
	}
	return append(b, '\n')
}

// keyValueLines writes a section as sorted lines of a key and its value, with
// the keys of status.json.
func keyValueLines(section any) []byte {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(jsonText(section), &values); err != nil {
		return []byte("error " + err.Error() + "\n")
	}
	lines := make([]string, 0, len(values))
	for key, raw := range values {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		lines = append(lines, key+" "+strings.ReplaceAll(text, "\n", " ")+"\n")
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

// summary is one screen for people.
func (s status) summary() string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", label, fmt.Sprintf(format, args...))
	}
	q, p, f := s.Queue, s.Publisher, s.FS
	fmt.Fprintf(&b, "spoolfs %s on %s, up %s\n\n", s.Version, s.Mountpoint, age(s.UptimeSeconds))
	line("health", "%s%s", s.Health.Level, intake(s.Health))
	for _, p := range s.Health.Problems {
		line("", "%s: %s", p.Code, p.Text)
	}
	line("queue", "%d ready, %d leased, %d delayed, %d staged, %s%s",
		q.Ready, q.Leased, q.Delayed, q.Staged, size(q.Bytes), oldest(q))
	line("dead", "%d set aside, and %d partial files", q.Dead, q.Partial)
	line("broker", "%s%s", p.State, next(p))
	line("", "%s exchange %s", p.Broker, p.Exchange)
	if p.LastError != "" {
		line("last error", "%s ago: %s", age(p.LastErrorSeconds), p.LastError)
		if p.State != string(publisher.Connected) && p.State != string(publisher.Idle) {
			line("what to do", "%s", p.LastAdvice)
		}
	}
	s.routeLines(line)
	line("published", "%d confirmed, %d in flight, %d sent again, %d rejected", p.ConfirmedTotal, p.InFlight, p.RequeuedTotal, p.RejectedTotal)
	line("files", "%d ingested with %d messages, %d open, %d held%s", f.IngestedFilesTotal, f.IngestedMessagesTotal, f.OpenFiles, f.HeldFiles, draining(f))
	return b.String()
}

func oldest(q queueStatus) string {
	if q.Ready+q.Leased == 0 {
		return ""
	}
	return ", oldest " + age(q.OldestReadySeconds)
}

// intake says what a level does not.
func intake(h health) string {
	switch {
	case !h.Ready:
		return ", and takes no files"
	case !h.Live:
		return ", and makes no progress"
	}
	return ""
}

func draining(f fsStatus) string {
	if !f.Draining {
		return ""
	}
	return "; no new ones are taken"
}

func next(p publisherStatus) string {
	if p.State != "waiting" {
		return ""
	}
	return ", next attempt in " + age(p.NextAttemptSeconds)
}

// age writes seconds for people.
func age(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// size writes bytes for people.
func size(n uint64) string {
	const kib = 1024
	switch {
	case n < 10*kib:
		return fmt.Sprintf("%d bytes", n)
	case n < 10*kib*kib:
		return fmt.Sprintf("%d KiB", n/kib)
	case n < 10*kib*kib*kib:
		return fmt.Sprintf("%d MiB", n/kib/kib)
	}
	return fmt.Sprintf("%d GiB", n/kib/kib/kib)
}
