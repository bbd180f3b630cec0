package main

import (
	"context"
	"log/slog"
	"time"
)

// summaries write to the log what a status says: a line for each problem that
// comes or goes, and from time to time, if something has happened, the numbers.
type summaries struct {
	log     *slog.Logger
	every   time.Duration // 0 is never
	dropped func() uint64 // records that the log has left out

	next     time.Time
	before   status // at the last line
	problems map[string]bool
	address  map[string]string // of the broker of each route, as logged
}

// observe takes the status of a moment.
func (u *summaries) observe(now time.Time, s status) {
	u.logProblems(s.Health.Problems)
	u.logAddresses(s)
	if u.next.IsZero() {
		u.next = now.Add(u.every)
	}
	if u.every > 0 && !now.Before(u.next) {
		u.next = now.Add(u.every)
		u.write(s)
	}
}

// logAddresses logs to which brokers routes have connected.
func (u *summaries) logAddresses(s status) {
	if u.address == nil {
		u.address = map[string]string{}
	}
	for _, route := range s.routeNames() {
		if to := s.Routes[route].Publisher.ConnectedTo; to != u.address[route] {
			u.address[route] = to
			u.log.Info("connected", "route", route, "broker", to)
		}
	}
}

// toldElsewhere are the problems of which the part that has them tells, or the
// command that made them.
var toldElsewhere = map[string]bool{
	"broker-away": true, "broker-blocked": true, "broker-refuses": true,
	"paused": true, "draining": true, "starting": true, "stopping": true,
	refusedFault: true, refusedClosed: true,
}

func (u *summaries) logProblems(problems []problem) {
	now := make(map[string]bool, len(problems))
	for _, p := range problems {
		if toldElsewhere[p.Code] {
			continue
		}
		now[p.Code] = true
		if !u.problems[p.Code] {
			level := slog.LevelWarn
			if p.Level == levelCritical {
				level = slog.LevelError
			}
			u.log.Log(context.Background(), level, "problem "+p.Code, "text", p.Text, "advice", p.Advice)
		}
	}
	for code := range u.problems {
		if !now[code] {
			u.log.Info("over: problem " + code)
		}
	}
	u.problems = now
}

// end sums up what has happened since the last summary.
func (u *summaries) end(s status) {
	if u.every > 0 {
		u.write(s)
	}
}

// write sums up, if something has happened since the last time. Names are those
// of status.json; "ingested", "published", "failures" and "refused" are what was
// added since the last line.
func (u *summaries) write(s status) {
	if !happened(&u.before, &s) {
		return
	}
	f, was := s.FS, u.before
	u.before = s
	for _, route := range s.routeNames()[1:] {
		if before := was.of(route); s.isActive(route) && happenedIn(&before, &s, route) {
			u.writeRoute(before, s.of(route), route)
		}
	}
	was, s = was.of(defaultRoute), s.of(defaultRoute)
	q, p := s.Queue, s.Publisher
	u.log.Info("summary", "route", defaultRoute,
		"ingested", f.IngestedMessagesTotal-was.FS.IngestedMessagesTotal,
		"published", p.ConfirmedTotal-was.Publisher.ConfirmedTotal,
		"failures", p.FailuresTotal-was.Publisher.FailuresTotal,
		"refused", f.RefusedRequestsTotal-was.FS.RefusedRequestsTotal,
		"level", s.Health.Level, "state", p.State,
		"ready", q.Ready, "leased", q.Leased, "delayed", q.Delayed, "dead", q.Dead, "staged", q.Staged,
		"partial", q.Partial, "bytes", q.Bytes, "oldest_ready_seconds", q.OldestReadySeconds, "in_flight", p.InFlight,
		"ingested_files_total", f.IngestedFilesTotal, "ingested_messages_total", f.IngestedMessagesTotal,
		"confirmed_total", p.ConfirmedTotal, "rejected_total", p.RejectedTotal, "invalid_total", p.InvalidTotal,
		"requeued_total", p.RequeuedTotal, "failures_total", p.FailuresTotal, "refused_requests_total", f.RefusedRequestsTotal,
		"purged_total", f.PurgedTotal, "redriven_total", f.RedrivenTotal,
		"not_logged_total", u.dropped())
}

// writeRoute sums up what is of a route besides that of the root; the statuses are
// as they are for it.
func (u *summaries) writeRoute(was, s status, route string) {
	q, p := s.Queue, s.Publisher
	u.log.Info("summary", "route", route,
		"published", p.ConfirmedTotal-was.Publisher.ConfirmedTotal, "failures", p.FailuresTotal-was.Publisher.FailuresTotal,
		"state", p.State, "ready", q.Ready, "leased", q.Leased, "delayed", q.Delayed, "dead", q.Dead, "staged", q.Staged,
		"partial", q.Partial, "bytes", q.Bytes, "oldest_ready_seconds", q.OldestReadySeconds, "in_flight", p.InFlight,
		"confirmed_total", p.ConfirmedTotal, "rejected_total", p.RejectedTotal, "invalid_total", p.InvalidTotal,
		"requeued_total", p.RequeuedTotal, "failures_total", p.FailuresTotal)
}

// happenedIn reports whether a count of a route differs.
func happenedIn(before, now *status, route string) bool {
	s := now.of(route)
	for _, n := range numbers {
		if n.isOfRoute() && n.counts() && n.of(before) != n.of(&s) {
			return true
		}
	}
	return false
}

// happened reports whether a count differs, in any route.
func happened(a, b *status) bool {
	for _, route := range b.routeNames()[1:] {
		if before := a.of(route); happenedIn(&before, b, route) {
			return true
		}
	}
	for _, n := range numbers {
		if n.counts() && n.of(a) != n.of(b) {
			return true
		}
	}
	return false
}
