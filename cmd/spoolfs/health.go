package main

import (
	"fmt"
	"slices"
	"time"

	"spoolfs/publisher"
)

// health is what monitoring asks for first. It is made of a status and of what a
// judge has seen before, and stands in status.json, so that "status --check",
// /livez, /readyz and the metrics say the same.
//
//	live      it makes progress. If not, a restart may help: the mount or the
//	          store does not answer, or a broker that is there confirms nothing.
//	ready     it takes files. A broker that is away changes nothing about that.
//	level     ok, warning or critical: the highest of the problems.
type health struct {
	Live     bool      `json:"live"`
	Ready    bool      `json:"ready"`
	Level    level     `json:"level"`
	Problems []problem `json:"problems"` // the worst first; never null
}

// problem is something that an operator should know.
type problem struct {
	Code   string `json:"code"` // for programs; codes are added, never renamed
	Level  level  `json:"level"`
	Text   string `json:"text"`   // what is wrong
	Advice string `json:"advice"` // what to do
}

// level is how bad something is.
type level string

const (
	levelOK       level = "ok"
	levelWarning  level = "warning"  // it works, and needs somebody's eye
	levelCritical level = "critical" // it does not do its work
)

// filling is the part of the queue's room from which on its fill is a problem.
const filling = 0.8

// certificateNotice is how long before its end a certificate is a problem.
const certificateNotice = 14 * 24 * time.Hour

// healthOf judges a status. Pure: now is only compared with the ends of
// certificates.
func healthOf(s status, seen observed, now time.Time) health {
	h := health{Live: true, Ready: true, Level: levelOK, Problems: []problem{}}
	h.judgeProgress(s, seen)
	h.judgeStore(s.Queue)
	h.judgeIntake(s.FS, seen)
	h.judgeBroker(s.Publisher)
	h.judgeLeftovers(s)
	h.judgeCertificates(s.Publisher, now)
	for _, route := range s.routeNames()[1:] {
		if s.isActive(route) {
			h.judgeRoute(s.of(route), route, seen, now)
		}
	}
	if s.ConfigError != "" {
		h.add(levelWarning, "config", "the last reload has failed, and the configuration before it is in force: "+s.ConfigError,
			"correct it, see what \"spoolfs check\" says, and send SIGHUP again")
	}
	return h
}

// add adds a problem. One that is there is told with both texts.
func (h *health) add(l level, code, text, advice string) {
	for i := range h.Problems {
		if p := &h.Problems[i]; p.Code == code && p.Level == l {
			p.Text += "; " + text
			return
		}
	}
	p := problem{Code: code, Level: l, Text: text, Advice: advice}
	if l != levelCritical {
		h.Problems = append(h.Problems, p)
		if h.Level == levelOK {
			h.Level = l
		}
		return
	}
	at := 0 // behind the other critical ones
	for at < len(h.Problems) && h.Problems[at].Level == levelCritical {
		at++
	}
	h.Problems = append(h.Problems[:at], append([]problem{p}, h.Problems[at:]...)...)
	h.Level = levelCritical
}

// judgeProgress is about what does not answer.
func (h *health) judgeProgress(s status, seen observed) {
	if seen.mountSilent > 0 {
		h.Live, h.Ready = false, false
		h.add(levelCritical, "mount-silent", "the mount has not answered for "+age(seen.mountSilent.Seconds()),
			"restart the daemon; what was closed is safe")
	}
	if seen.storeSilent > 0 {
		h.Live, h.Ready = false, false
		h.add(levelCritical, "store-silent", "the disk of the store has not answered for "+age(seen.storeSilent.Seconds()),
			"see the kernel's log for the disk; writers get EIO after --store-timeout")
	}
	if slices.Contains(seen.stalled, defaultRoute) {
		h.judgeStalled(s.of(defaultRoute))
	}
}

func (h *health) judgeStalled(s status) {
	h.Live = false
	h.add(levelCritical, "stalled", fmt.Sprintf("%s is there and has confirmed nothing for %s, while %d messages wait",
		s.Publisher.Broker, age(s.Publisher.StalledSeconds), s.Queue.Ready+s.Queue.Leased),
		"see whether the broker, or the node of its queue, hangs; if it is well restart the daemon")
}

// judgeRoute judges a route besides that of the root. Each problem is there once,
// with the names of the routes that have it.
func (h *health) judgeRoute(s status, route string, seen observed, now time.Time) {
	of := health{Live: true}
	of.judgeBroker(s.Publisher)
	of.judgeCertificates(s.Publisher, now)
	if slices.Contains(seen.stalled, route) {
		of.judgeStalled(s)
	}
	h.Live = h.Live && of.Live
	for _, p := range of.Problems {
		h.add(p.Level, p.Code, "route "+route+": "+p.Text, p.Advice)
	}
}

// judgeStore is about what keeps the store from taking messages.
func (h *health) judgeStore(q queueStatus) {
	advice := map[string]string{
		refusedDisk:  "make room on the disk of the store; publishing goes on, and files are taken again by themselves",
		refusedFull:  "see why the broker takes less than comes in; --max-bytes and --max-messages set the limit",
		refusedFault: "see the log and the disk; it is opened again until that succeeds, and writers get EIO meanwhile",
	}
	switch {
	case q.Refusal != "":
		h.Ready = false
		h.add(levelCritical, q.Refusal, q.RefusalText, advice[q.Refusal])
	case float64(q.Bytes) > filling*float64(q.Bytes+q.FreeBytes):
		h.add(levelWarning, "filling", fmt.Sprintf("%s are stored, and there is room for %s", size(q.Bytes), size(q.FreeBytes)), advice[refusedFull])
	}
}

// judgeIntake is about what else keeps files out.
func (h *health) judgeIntake(f fsStatus, seen observed) {
	switch {
	case seen.phase == phaseStarting:
		h.Ready = false
		h.add(levelWarning, "starting", "it is starting, and nothing is mounted yet", "wait")
	case seen.phase == phaseStopping:
		h.Ready = false
		h.add(levelWarning, "stopping", "it is stopping, and takes no new files", "wait")
	case f.Draining:
		h.Ready = false
		h.add(levelWarning, "draining", "an operator has it take no new files (drain)", "write resume to .status/ctl when it is to go on")
	}
}

// judgeBroker is about the way to the broker.
func (h *health) judgeBroker(p publisherStatus) {
	switch publisher.State(p.State) {
	case publisher.Paused:
		h.add(levelWarning, "paused", "an operator has paused publishing", "write resume to .status/ctl when it is to go on")
	case publisher.Blocked:
		h.add(levelWarning, "broker-blocked", "the broker takes nothing at the moment", publisher.AlarmedBroker.Advice())
	case publisher.Slowed:
		h.add(levelWarning, "broker-refuses", "the broker refuses messages, and they are sent slower: "+p.LastError, publisher.Rejecting.Advice())
	case publisher.Waiting:
		h.add(levelWarning, "broker-away", "nothing is published: "+p.LastError, p.LastAdvice)
	case publisher.Connecting:
		if p.AwaySeconds > 0 {
			h.add(levelWarning, "broker-away", "nothing is published: "+p.LastError, p.LastAdvice)
		}
	}
}

// judgeLeftovers is about what waits for somebody's hand in the routes.
func (h *health) judgeLeftovers(s status) {
	if n := s.Queue.Dead; n > 0 {
		h.add(levelWarning, "dead-letters", fmt.Sprintf("messages that are set aside: %d", n),
			"see the reasons in .status/routes/*/dead; redrive or purge them")
	}
	for _, name := range s.routeNames() {
		r := s.Routes[name]
		if r.Queue.Full {
			// It is ready all the same: the other routes take files.
			h.add(levelCritical, "route-full", fmt.Sprintf("route %s is full with %d messages of %s, and refuses files (ENOSPC)", name, r.Queue.all(), size(r.Queue.Bytes)),
				"see why its broker takes less than comes in, or what is set aside in it; route_share, route_bytes and route_messages set the limit, on_full what happens then")
		}
		if r.State == routeRemoved {
			h.add(levelWarning, "route-removed", fmt.Sprintf("route %s is not in the configuration, and holds messages: %d", name, r.Queue.all()),
				"put it back, name it in \"was\" of the route that takes its place, or drain or purge it")
		}
	}
}

// judgeCertificates is about those of a connection.
func (h *health) judgeCertificates(p publisherStatus, now time.Time) {
	for _, c := range []struct {
		whose string
		ends  int64
	}{{"the broker's", p.TLSServerExpires}, {"our", p.TLSClientExpires}} {
		if left := time.Unix(c.ends, 0).Sub(now); c.ends != 0 && left < certificateNotice {
			h.add(levelWarning, "certificate", fmt.Sprintf("%s certificate ends %s", c.whose, time.Unix(c.ends, 0).UTC().Format(time.RFC3339)),
				"replace it; it is read anew at the next connect")
		}
	}
}
