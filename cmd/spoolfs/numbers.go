package main

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"spoolfs/publisher"
)

// number is a metric that is a number of status.json.
type number struct {
	name   string // without spoolfs_
	labels [][2]string
	kind   prometheus.ValueType
	help   string
	of     func(*status) float64
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// states are all that a publisher may be in.
var states = []publisher.State{
	publisher.Idle, publisher.Connecting, publisher.Connected, publisher.Slowed,
	publisher.Blocked, publisher.Waiting, publisher.Paused,
}

// ofRoute is the label of what there is for each route.
var ofRoute = [2]string{"route"}

// inState are the labels of a count of messages.
func inState(state string) [][2]string { return [][2]string{ofRoute, {"state", state}} }

var route = [][2]string{ofRoute}

// isOfRoute reports whether there is one for each route.
func (n *number) isOfRoute() bool { return slices.Contains(n.labels, ofRoute) }

// counts reports whether it says that something has happened.
func (n *number) counts() bool {
	return n.kind == counter || strings.HasPrefix(n.name, "queue_messages")
}

// desc describes the metric. What there is for each route has that as its only
// label that is not constant.
func (n *number) desc() *prometheus.Desc {
	var variable []string
	labels := prometheus.Labels{}
	for _, l := range n.labels {
		if l == ofRoute {
			variable = []string{l[0]}
		} else {
			labels[l[0]] = l[1]
		}
	}
	return prometheus.NewDesc("spoolfs_"+n.name, n.help, variable, labels)
}

const queueHelp = "Messages in the store, by state: ready, leased (on their way), delayed, dead, or staged (closed, but open elsewhere)."

const droppedHelp = "Messages that were dropped for want of room, as on_full says."

// numbers are the metrics that are numbers of status.json, in its order.
var numbers = []number{
	{"uptime_seconds", nil, gauge, "Since the daemon was started.", func(s *status) float64 { return s.UptimeSeconds }},
	{"live", nil, gauge, "1 while the daemon makes progress, as /livez says.", func(s *status) float64 { return oneIf(s.Health.Live) }},
	{"ready", nil, gauge, "1 while the daemon takes files, as /readyz says.", func(s *status) float64 { return oneIf(s.Health.Ready) }},

	{"queue_messages", inState("ready"), gauge, queueHelp, func(s *status) float64 { return float64(s.Queue.Ready) }},
	{"queue_messages", inState("leased"), gauge, queueHelp, func(s *status) float64 { return float64(s.Queue.Leased) }},
	{"queue_messages", inState("delayed"), gauge, queueHelp, func(s *status) float64 { return float64(s.Queue.Delayed) }},
	{"queue_messages", inState("dead"), gauge, queueHelp, func(s *status) float64 { return float64(s.Queue.Dead) }},
	{"queue_messages", inState("staged"), gauge, queueHelp, func(s *status) float64 { return float64(s.Queue.Staged) }},
	{"dead_letter_messages", nil, gauge, "Messages that are set aside with a reason.", func(s *status) float64 { return float64(s.Queue.Dead) }},
	{"partial_files", nil, gauge, "Files whose writer did not get to their end.", func(s *status) float64 { return float64(s.Queue.Partial) }},
	{"dropped_messages_total", [][2]string{ofRoute, {"policy", "drop-oldest"}}, counter, droppedHelp, func(s *status) float64 { return float64(s.Queue.DroppedOldestTotal) }},
	{"dropped_messages_total", [][2]string{ofRoute, {"policy", "drop-newest"}}, counter, droppedHelp, func(s *status) float64 { return float64(s.Queue.DroppedNewestTotal) }},
	{"coalesced_total", route, counter, "Messages that waited and were replaced by later ones about the same, as coalesce says.", func(s *status) float64 { return float64(s.Queue.CoalescedTotal) }},
	{"queue_bytes", nil, gauge, "Size of the records in the store.", func(s *status) float64 { return float64(s.Queue.Bytes) }},
	{"queue_oldest_age_seconds", route, gauge, "Age of the oldest message that is ready or leased.", func(s *status) float64 { return s.Queue.OldestReadySeconds }},
	{"queue_free_bytes", nil, gauge, "That the queue would still take.", func(s *status) float64 { return float64(s.Queue.FreeBytes) }},
	{"quota_bytes", nil, gauge, "Limit of queue_bytes.", func(s *status) float64 { return float64(s.Queue.LimitBytes) }},
	{"store_disk_usage_bytes", nil, gauge, "That the store takes on its disk.", func(s *status) float64 { return float64(s.Queue.StoreBytes) }},
	{"store_disk_free_bytes", nil, gauge, "Free on the file system of the store.", func(s *status) float64 { return float64(s.Queue.DiskFreeBytes) }},
	{"store_faults_total", nil, counter, "How often the store has failed and was opened again.", func(s *status) float64 { return float64(s.Queue.FaultsTotal) }},
	{"late_messages_total", nil, counter, "Messages that lost their place to later ones: their file was released over 100 ms after it was flushed.", func(s *status) float64 { return float64(s.Queue.LateTotal) }},
	{"store_damaged_total", nil, counter, "Rows, blocks or files of the store that could not be read.", func(s *status) float64 { return float64(s.Queue.DamagedTotal) }},
	{"store_missing_total", nil, counter, "Messages that were in them.", func(s *status) float64 { return float64(s.Queue.MissingTotal) }},

	{"in_flight_messages", route, gauge, "Published, without a verdict of the broker.", func(s *status) float64 { return float64(s.Publisher.InFlight) }},
	{"window_messages", route, gauge, "How many may be in flight at the moment.", func(s *status) float64 { return float64(s.Publisher.Window) }},
	{"published_total", route, counter, "Messages that the broker has confirmed.", func(s *status) float64 { return float64(s.Publisher.ConfirmedTotal) }},
	{"returned_total", route, counter, "Messages for which no queue was bound.", func(s *status) float64 { return float64(s.Publisher.ReturnedTotal) }},
	{"nacked_total", route, counter, "Messages that the broker rejected, to be tried again.", func(s *status) float64 { return float64(s.Publisher.RejectedTotal) }},
	{"invalid_total", route, counter, "Messages set aside, as the broker cannot take them.", func(s *status) float64 { return float64(s.Publisher.InvalidTotal) }},
	{"followed_total", route, counter, "Messages that were handed to routes that follow.", func(s *status) float64 { return float64(s.Publisher.FollowedTotal) }},
	{"requeued_total", route, counter, "Messages sent again, as their connection was lost.", func(s *status) float64 { return float64(s.Publisher.RequeuedTotal) }},
	{"refused_messages_total", route, counter, "Messages delayed, as the exchange that they name is missing or not allowed.", func(s *status) float64 { return float64(s.Publisher.RefusedTotal) }},
	{"expired_total", route, counter, "Messages that got too old.", func(s *status) float64 { return float64(s.Publisher.ExpiredTotal) }},
	{"given_up_total", route, counter, "Messages that have failed for good, as the broker has refused them too often.", func(s *status) float64 { return float64(s.Publisher.GivenUpTotal) }},
	{"connections_total", route, counter, "Connections with the broker that came about.", func(s *status) float64 { return float64(s.Publisher.SessionsTotal) }},
	{"reconnects_total", route, counter, "Of those, after a failure.", func(s *status) float64 { return float64(s.Publisher.ReconnectsTotal) }},
	{"connection_failures_total", route, counter, "Connections that failed, or did not come about.", func(s *status) float64 { return float64(s.Publisher.FailuresTotal) }},
	{"connection_up", route, gauge, "1 while there is a connection with the broker; an idle publisher has none.", func(s *status) float64 { return oneIf(isConnected(s.Publisher)) }},
	{"connection_blocked", route, gauge, "1 while the broker blocks publishers.", func(s *status) float64 { return oneIf(s.Publisher.State == string(publisher.Blocked)) }},
	{"away_seconds", route, gauge, "Since publishing began to fail; 0 while all is well.", func(s *status) float64 { return s.Publisher.AwaySeconds }},
	{"stalled_seconds", route, gauge, "For which a broker that is there has taken nothing.", func(s *status) float64 { return s.Publisher.StalledSeconds }},
	{"paused_seconds", route, gauge, "That publishing still pauses because of a refusal.", func(s *status) float64 { return s.Publisher.PausedSeconds }},
	{"next_attempt_seconds", route, gauge, "Until the next attempt to connect.", func(s *status) float64 { return s.Publisher.NextAttemptSeconds }},
	{"last_error_age_seconds", route, gauge, "Since the last error; 0 if there was none.", func(s *status) float64 { return s.Publisher.LastErrorSeconds }},
	{"tls_certificate_expiry_timestamp_seconds", [][2]string{ofRoute, {"certificate", "broker"}}, gauge, tlsHelp, func(s *status) float64 { return float64(s.Publisher.TLSServerExpires) }},
	{"tls_certificate_expiry_timestamp_seconds", [][2]string{ofRoute, {"certificate", "client"}}, gauge, tlsHelp, func(s *status) float64 { return float64(s.Publisher.TLSClientExpires) }},

	{"open_files", nil, gauge, "Files that are open for writing.", func(s *status) float64 { return float64(s.FS.OpenFiles) }},
	{"held_files", nil, gauge, "Files that wait for their rename.", func(s *status) float64 { return float64(s.FS.HeldFiles) }},
	{"buffered_bytes", nil, gauge, "Memory for what is written to open files.", func(s *status) float64 { return float64(s.FS.BufferedBytes) }},
	{"draining", nil, gauge, "1 while no new files are taken.", func(s *status) float64 { return oneIf(s.FS.Draining) }},
	{"ingested_files_total", nil, counter, "Files that were closed with something in them.", func(s *status) float64 { return float64(s.FS.IngestedFilesTotal) }},
	{"ingested_total", nil, counter, "Messages in them.", func(s *status) float64 { return float64(s.FS.IngestedMessagesTotal) }},
	{"ingested_dead_total", nil, counter, "Dead letters in them.", func(s *status) float64 { return float64(s.FS.IngestedDeadTotal) }},
	{"ingested_partial_total", nil, counter, "Files in them whose writer did not get to their end.", func(s *status) float64 { return float64(s.FS.IngestedPartialTotal) }},
	{"ingested_repeats_total", nil, counter, "Records that had stood in their file before.", func(s *status) float64 { return float64(s.FS.IngestedRepeatsTotal) }},
	{"ingest_errors_total", nil, counter, "Closes and fsyncs that failed.", func(s *status) float64 { return float64(s.FS.IngestErrorsTotal) }},
	{"unknown_endings_total", nil, counter, "Files published though their writer may have been killed.", func(s *status) float64 { return float64(s.FS.UnknownEndingsTotal) }},
	{"purged_total", nil, counter, "Messages that an operator removed.", func(s *status) float64 { return float64(s.FS.PurgedTotal) }},
	{"redriven_total", nil, counter, "Messages that an operator made ready again.", func(s *status) float64 { return float64(s.FS.RedrivenTotal) }},
	{"panics_total", nil, counter, "Requests that were answered with an error by a bug.", func(s *status) float64 { return float64(s.FS.PanicsTotal) }},

	{"janitor_files_total", nil, counter, "Files that plain directories have brought.", func(s *status) float64 { return float64(s.Janitor.FilesTotal) }},
	{"janitor_messages_total", nil, counter, "Messages in them.", func(s *status) float64 { return float64(s.Janitor.MessagesTotal) }},
	{"janitor_dead_total", nil, counter, "Dead letters in them.", func(s *status) float64 { return float64(s.Janitor.DeadTotal) }},
	{"janitor_partial_total", nil, counter, "Files in them that were not whole.", func(s *status) float64 { return float64(s.Janitor.PartialTotal) }},
	{"janitor_quarantined_total", nil, counter, "Files without a message that were moved aside.", func(s *status) float64 { return float64(s.Janitor.QuarantinedTotal) }},
	{"janitor_takeovers_total", nil, counter, "Claims of janitors that were gone.", func(s *status) float64 { return float64(s.Janitor.TakeoversTotal) }},
	{"janitor_changed_total", nil, counter, "Files that changed while they were taken, and were taken again.", func(s *status) float64 { return float64(s.Janitor.ChangedTotal) }},
	{"janitor_failures_total", nil, counter, "Passes over a plain directory that failed.", func(s *status) float64 { return float64(s.Janitor.FailuresTotal) }},
	{"janitor_waiting_files", nil, gauge, "Files that are young, or open for writing.", func(s *status) float64 { return float64(s.Janitor.WaitingFiles) }},
	{"janitor_left_files", nil, gauge, "Files that are never taken: links, too large, no files.", func(s *status) float64 { return float64(s.Janitor.LeftFiles) }},

	{"keeper_uptime_seconds", nil, gauge, "Since the keeper was started; this and the next are 0 without a keeper.", func(s *status) float64 { return float64(s.Keeper.Seconds) }},
	{"keeper_workers_total", nil, counter, "Workers that were started.", func(s *status) float64 { return float64(s.Keeper.WorkersTotal) }},
	{"keeper_deaths_total", nil, counter, "Workers that ended unasked.", func(s *status) float64 { return float64(s.Keeper.DeathsTotal) }},
	{"keeper_last_gap_seconds", nil, gauge, "For which nobody served the mount, the last time.", func(s *status) float64 { return float64(s.Keeper.LastGapSeconds) }},
	{"keeper_worst_gap_seconds", nil, gauge, "For which nobody served the mount, at worst.", func(s *status) float64 { return float64(s.Keeper.WorstGapSeconds) }},
	{"keeper_refused_total", nil, counter, "Requests that each worker died of.", func(s *status) float64 { return float64(s.Keeper.RefusedTotal) }},
	{"keeper_upgrades_total", nil, counter, "Upgrades that went well.", func(s *status) float64 { return float64(s.Keeper.UpgradesTotal) }},
	{"keeper_upgrade_failures_total", nil, counter, "Upgrades that did not.", func(s *status) float64 { return float64(s.Keeper.UpgradeFailuresTotal) }},
	{"worker_uptime_seconds", nil, gauge, "Since the process that serves the mount was started.", func(s *status) float64 { return float64(s.Keeper.WorkerSeconds) }},
}

const tlsHelp = "When the certificate of the last connection ends; 0 without TLS."

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// isConnected reports whether there is a session.
func isConnected(p publisherStatus) bool {
	switch publisher.State(p.State) {
	case publisher.Connected, publisher.Slowed, publisher.Blocked:
		return true
	}
	return false
}
