package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"spoolfs/publisher"
)

// serving is a status in which all is well.
func serving(change func(*status)) status {
	s := status{Queue: queueStatus{FreeBytes: 1 << 30}, Publisher: publisherStatus{State: string(publisher.Connected)}}
	if change != nil {
		change(&s)
	}
	return s
}

// TestHealth: what is a problem, how bad it is, and what it means for files and
// for a restart. A broker that is away keeps no files out (O7).
func TestHealth(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	soon, later := now.Add(24*time.Hour).Unix(), now.Add(365*24*time.Hour).Unix()
	well := observed{phase: phaseServing}
	for _, tt := range []struct {
		name   string
		seen   observed
		change func(*status)
		want   string // live, ready, level and codes
	}{
		{"well", well, nil, "true true ok"},
		{"idle", well, func(s *status) { s.Publisher.State = "idle" }, "true true ok"},
		{"first connect", well, func(s *status) { s.Publisher.State = "connecting" }, "true true ok"},
		{"broker away", well, func(s *status) { s.Publisher.State = "waiting" }, "true true warning broker-away"},
		{"broker still away", well, func(s *status) { s.Publisher.State, s.Publisher.AwaySeconds = "connecting", 3 }, "true true warning broker-away"},
		{"blocked", well, func(s *status) { s.Publisher.State = "blocked" }, "true true warning broker-blocked"},
		{"refusing", well, func(s *status) { s.Publisher.State = "slowed" }, "true true warning broker-refuses"},
		{"paused", well, func(s *status) { s.Publisher.State = "paused" }, "true true warning paused"},
		{"disk full", well, func(s *status) { s.Queue.Refusal = refusedDisk }, "true false critical disk-full"},
		{"queue full", well, func(s *status) { s.Queue.Refusal = refusedFull }, "true false critical queue-full"},
		{"store parked", well, func(s *status) { s.Queue.Refusal = refusedFault }, "true false critical store-failed"},
		{"filling", well, func(s *status) { s.Queue.Bytes, s.Queue.FreeBytes = 81, 19 }, "true true warning filling"},
		{"not filling", well, func(s *status) { s.Queue.Bytes, s.Queue.FreeBytes = 80, 20 }, "true true ok"},
		{"draining", well, func(s *status) { s.FS.Draining = true }, "true false warning draining"},
		{"starting", observed{}, nil, "true false warning starting"},
		{"stopping", observed{phase: phaseStopping}, func(s *status) { s.FS.Draining = true }, "true false warning stopping"},
		{"dead letters", well, func(s *status) { s.Queue.Dead = 1 }, "true true warning dead-letters"},
		{"a route is full", well, func(s *status) {
			s.Routes = map[string]routeStatus{
				defaultRoute: {State: routeActive, Publisher: s.Publisher},
				"a":          {State: routeActive, Publisher: s.Publisher, Queue: routeQueue{Full: true}},
			}
		}, "true true critical route-full"},
		{"certificate", well, func(s *status) { s.Publisher.TLSServerExpires, s.Publisher.TLSClientExpires = soon, later }, "true true warning certificate"},
		{"stalled", observed{phase: phaseServing, stalled: []string{defaultRoute}}, nil, "false true critical stalled"},
		{"mount", observed{phase: phaseServing, mountSilent: time.Minute}, nil, "false false critical mount-silent"},
		{"store", observed{phase: phaseServing, storeSilent: time.Minute}, nil, "false false critical store-silent"},
		{"the worst first", observed{phase: phaseServing, stalled: []string{defaultRoute}}, func(s *status) {
			s.Queue.Dead, s.Queue.Refusal, s.Publisher.State = 1, refusedDisk, "paused"
		}, "false false critical stalled disk-full paused dead-letters"},
	} {
		s := serving(tt.change)
		s.Queue.RefusalText = s.Queue.Refusal
		h := healthOf(s, tt.seen, now)
		got := fmt.Sprint(h.Live, h.Ready, " ", h.Level)
		for _, p := range h.Problems {
			got += " " + p.Code
			if p.Text == "" || p.Advice == "" && p.Code != "broker-away" { // whose advice is the publisher's
				t.Errorf("%s: problem %+v says nothing", tt.name, p)
			}
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestJudge: a broker that is there and of which nothing comes for a minute, while
// messages wait, is stalled; everything that explains it is not.
func TestJudge(t *testing.T) {
	in := func(state publisher.State, change func(*status)) func(*status, int) {
		return func(s *status, _ int) {
			s.Publisher.State = string(state)
			if change != nil {
				change(s)
			}
		}
	}
	silent := func(s *status) { s.Publisher.LastCause = string(publisher.Silent) }
	unreachable := func(s *status) { s.Publisher.LastCause = string(publisher.Unreachable) }
	for _, tt := range []struct {
		name string
		at   func(s *status, second int)
		want int // second at which it is stalled first; 0 never
	}{
		{"silent", in(publisher.Connected, nil), 60},
		{"nothing waits", in(publisher.Connected, func(s *status) { s.Queue.Ready = 0 }), 0},
		{"leased only", in(publisher.Connected, func(s *status) { s.Queue.Ready, s.Queue.Leased = 0, 5 }), 60},
		{"delayed only", in(publisher.Connected, func(s *status) { s.Queue.Ready, s.Queue.Delayed = 0, 5 }), 0},
		{"idle, though there is something", in(publisher.Idle, nil), 60},
		{"away", in(publisher.Waiting, unreachable), 0},
		{"connecting", in(publisher.Connecting, unreachable), 0},
		{"takes connections and says nothing", in(publisher.Waiting, silent), 60},
		{"blocked", in(publisher.Blocked, nil), 0},
		{"paused", in(publisher.Paused, nil), 0},
		{"lazy", in(publisher.Waiting, func(s *status) { s.Publisher.LastCause = string(publisher.ExchangeMissing) }), 0},
		{"backing off", in(publisher.Slowed, func(s *status) { s.Publisher.PausedSeconds = 3 }), 0},
		{"slowed, and silent", in(publisher.Slowed, nil), 60},
		{"rate-limited", in(publisher.Connected, func(s *status) { s.Publisher.RateLimited = true }), 0},
		{"rate-limited, and silent", in(publisher.Connected, func(s *status) { s.Publisher.RateLimited, s.Publisher.InFlight = true, 1 }), 60},
		{"the store has failed", in(publisher.Connected, func(s *status) { s.Queue.Refusal = refusedFault }), 0},
		{"confirms at times", func(s *status, n int) {
			s.Publisher.State, s.Publisher.ConfirmedTotal = "connected", uint64(n/59)
		}, 0},
		{"nacks", func(s *status, n int) {
			s.Publisher.State, s.Publisher.RejectedTotal = "connected", uint64(n/59)
		}, 0},
		{"sessions that are replaced", func(s *status, n int) { // 30 s each, 10 s between
			s.Publisher.State, s.Publisher.LastCause = "connected", string(publisher.Lost)
			if n%40 >= 30 {
				s.Publisher.State = "waiting"
			}
		}, 80},
		{"away for long, then silent", func(s *status, n int) {
			s.Publisher.State, s.Publisher.LastCause = "connected", string(publisher.Unreachable)
			if n > 50 && n < 150 {
				s.Publisher.State = "waiting"
			}
		}, 209},
	} {
		j := judge{limit: time.Minute}
		got := 0
		start := time.Unix(1_000_000, 0)
		for n := range 300 {
			s := serving(func(s *status) { s.Queue.Ready = 100 })
			tt.at(&s, n)
			j.observe(start.Add(time.Duration(n)*time.Second), s)
			if j.isStalled() && got == 0 {
				got = n
			}
		}
		if got != tt.want {
			t.Errorf("%s: stalled at second %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestJudge_Stopped: time in which the process did not run, as with SIGSTOP or a
// suspended machine, is not the broker's.
func TestJudge_Stopped(t *testing.T) {
	j := judge{limit: time.Minute}
	s := serving(func(s *status) { s.Queue.Ready = 1 })
	start := time.Unix(1_000_000, 0)
	j.observe(start, s)
	j.observe(start.Add(time.Hour), s)
	if j.isStalled() {
		t.Error("an hour without a look counts as an hour of silence")
	}
}

// TestSummary_Problems: the summary shows what is wrong, first.
func TestSummary_Problems(t *testing.T) {
	s := serving(func(s *status) { s.Queue.Refusal, s.Queue.RefusalText = refusedDisk, "disk is full: 5 bytes are free" })
	s.Health = healthOf(s, observed{phase: phaseServing}, time.Now())
	text := s.summary()
	if !strings.Contains(text, "critical, and takes no files\n") || !strings.Contains(text, "disk-full: disk is full: 5 bytes are free\n") {
		t.Errorf("the summary is\n%s", text)
	}
}
