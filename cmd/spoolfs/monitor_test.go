package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProbe: a part that is seen at work is not asked; one that is asked and does
// not answer is silent, until it answers.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		hang := make(chan struct{})
		p := &probe{every: probeEvery, limit: probeLimit, ask: func(context.Context) {
			if asked++; asked == 3 {
				<-hang
			}
		}}
		wait := func(d time.Duration, busy bool) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(lookEvery) {
				activity := uint64(1)
				if busy {
					activity = uint64(time.Now().Unix())
				}
				p.step(t.Context(), activity)
				synctest.Wait()
			}
		}
		wait(time.Minute, true)
		if asked != 0 {
			t.Errorf("asked %d times what is at work", asked)
		}
		wait(29*time.Second, false)
		if asked != 2 || p.silent(time.Now()) != 0 {
			t.Errorf("asked %d times, silent for %s", asked, p.silent(time.Now()))
		}
		wait(15*time.Second, false)
		if s := p.silent(time.Now()); asked != 3 || s != 0 {
			t.Errorf("asked %d times, silent for %s: too early", asked, s)
		}
		wait(15*time.Second, true) // others have answers
		if s := p.silent(time.Now()); asked != 3 || s != 0 {
			t.Errorf("asked %d times, silent for %s though it works", asked, s)
		}
		wait(25*time.Second, false)
		if s := p.silent(time.Now()); asked != 3 || s < probeLimit {
			t.Errorf("asked %d times, silent for %s", asked, s)
		}
		close(hang)
		synctest.Wait()
		if s := p.silent(time.Now()); s != 0 {
			t.Errorf("silent for %s after the answer", s)
		}
	})
}

// TestMonitor_Progress: what ends the daemon by its watchdog is a mount or a store
// that does not answer, and never the broker or a full disk.
func TestMonitor_Progress(t *testing.T) {
	for _, tt := range []struct {
		name         string
		mount, store bool // answer
		want         string
	}{
		{"both answer", true, true, ""},
		{"no mount", false, true, "mount"},
		{"no store", true, false, "store"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ask := func(answers bool) *probe {
				return &probe{every: probeEvery, limit: probeLimit, ask: func(context.Context) {
					if !answers {
						<-ctx.Done()
					}
				}}
			}
			m := newMonitor(func() status {
				return serving(func(s *status) { s.Queue.Ready, s.Publisher.State = 5, "waiting" })
			}, time.Minute, quiet())
			m.mount, m.store = ask(tt.mount), ask(tt.store)
			m.enter(phaseServing)
			go m.run(ctx)
			time.Sleep(5 * time.Minute)
			err := m.progress()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), "the "+tt.want+" has not answered") {
				t.Errorf("%s: %v", tt.name, err)
			}
			if h := m.health(); h.Live != (err == nil) {
				t.Errorf("%s: health is %+v", tt.name, h)
			}
			cancel()
			synctest.Wait()
		})
	}
}

// TestMonitor_HungLook: a look that does not end, as the disk hangs, is noticed by
// those who ask, and none of them waits for it.
func TestMonitor_HungLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		looks := 0
		m := newMonitor(func() status {
			if looks++; looks > 10 {
				<-ctx.Done()
			}
			return serving(nil)
		}, time.Minute, quiet())
		m.enter(phaseServing)
		go m.run(ctx)
		time.Sleep(20 * time.Second)
		if err := m.progress(); err != nil || !m.health().Ready {
			t.Errorf("too early: %v %+v", err, m.health())
		}
		time.Sleep(time.Minute)
		if err := m.progress(); err == nil || m.health().Ready {
			t.Errorf("not noticed: %v %+v", err, m.health())
		}
		cancel()
		synctest.Wait()
	})
}

// quiet are summaries that nobody reads.
func quiet() *summaries {
	limit := newLogLimit()
	log := newLogger(logOptions{level: slog.LevelError, format: "text"}, &bytes.Buffer{}, &events{}, limit)
	return &summaries{log: log, dropped: limit.total}
}

// TestSummaries: a summary comes when something has happened, and not else; a
// problem is told when it comes and when it goes.
func TestSummaries(t *testing.T) {
	var out bytes.Buffer
	limit := newLogLimit()
	log := newLogger(logOptions{level: slog.LevelInfo, format: "text"}, &out, &events{}, limit)
	u := &summaries{log: log, every: time.Minute, dropped: limit.total}
	start := time.Unix(1_000_000, 0)
	for n := range 601 {
		s := serving(func(s *status) { s.UptimeSeconds = float64(n) })
		if n > 100 { // once
			s.FS.IngestedMessagesTotal = 5
		}
		if n > 200 && n < 300 {
			s.Health.Problems = []problem{{Code: "filling", Level: levelWarning, Text: "x"}, {Code: "broker-away"}}
		}
		u.observe(start.Add(time.Duration(n)*time.Second), s)
	}
	got := out.String()
	for line, want := range map[string]int{
		"msg=summary": 1, "ingested=5": 1, `level=WARN msg="problem filling"`: 1, `msg="over: problem filling"`: 1, "broker-away": 0,
	} {
		if n := strings.Count(got, line); n != want {
			t.Errorf("%d times %q, want %d, in\n%s", n, line, want, got)
		}
	}
}
