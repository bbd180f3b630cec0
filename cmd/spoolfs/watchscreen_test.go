package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file below testdata, or writes that with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update makes it)", err)
	}
	if got != string(want) {
		t.Errorf("%s is not\n%s\nbut\n%s\n(go test -update accepts it)", path, want, got)
	}
}

// began is when the histories of the tests begin.
var began = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)

// script makes a history of a sample a second from what changes a status.
func script(n int, change func(second int, s *status) error) history {
	var h history
	s := status{Version: "1.0", Mountpoint: "/run/spool", Health: health{Live: true, Ready: true, Level: levelOK}}
	s.Publisher = publisherStatus{State: "connected", Broker: "amqp://u@broker/", ConnectedTo: "amqp://u@broker:5672/", Exchange: "x"}
	s.Queue.FreeBytes = 10 << 30
	for i := range n {
		s.UptimeSeconds = float64(3600 + i)
		err := change(i, &s)
		now := s
		one := sample{at: began.Add(time.Duration(i) * time.Second), status: &now}
		if err != nil {
			one.status, one.err = nil, err.Error()
		}
		h = h.with(one)
	}
	return h
}

// steady is a spool that takes and sends 120 messages a second.
func steady(i int, s *status) error {
	s.FS.IngestedMessagesTotal += 120
	s.FS.IngestedFilesTotal += 40
	s.Publisher.ConfirmedTotal += 120
	s.Queue.Ready, s.Queue.OldestReadySeconds = 35, 0.3
	return nil
}

// outage is a broker that goes away after two minutes, with a flood of files.
func outage(i int, s *status) error {
	if i < 120 {
		return steady(i, s)
	}
	s.FS.IngestedMessagesTotal += uint64(120 + 10*(i%30))
	s.FS.OpenFiles, s.Queue.Staged = 3, 7
	s.Queue.Ready += uint64(120 + 10*(i%30))
	s.Queue.OldestReadySeconds = float64(i - 119)
	s.Queue.Bytes += 40 << 20
	s.Queue.FreeBytes -= 40 << 20
	s.Queue.Dead = 3
	s.Publisher.State, s.Publisher.NextAttemptSeconds = "waiting", 4
	s.Publisher.LastError, s.Publisher.LastErrorSeconds = "connect: dial broker:5672: connection refused", 2.1
	s.Health.Level = levelWarning
	s.Health.Problems = []problem{
		{Code: "broker-away", Level: levelWarning, Text: "nothing is published: " + s.Publisher.LastError, Advice: "check host, port and network, and that the broker runs; what is queued goes out when it is back"},
		{Code: "dead-letters", Level: levelWarning, Text: "messages that are set aside: 3", Advice: "see the reasons in .status/routes/*/dead; redrive or purge them"},
	}
	return nil
}

// drained is what follows: the broker is back and takes 900 a second.
func drained(i int, s *status) error {
	if i < 200 {
		return outage(i, s)
	}
	if i == 200 {
		s.Health, s.Queue.Dead = health{Live: true, Ready: true, Level: levelOK}, 0
		s.Publisher.State = "connected"
	}
	s.FS.IngestedMessagesTotal += 100
	s.Publisher.ConfirmedTotal += 900
	s.Queue.Ready -= min(s.Queue.Ready, 800)
	return nil
}

// restarted is a daemon that does not answer for a while, and begins anew.
func restarted(i int, s *status) error {
	switch {
	case i > 40 && i < 70:
		return fmt.Errorf("the daemon of /run/spool is gone and has left a dead mount")
	case i == 70:
		s.FS.IngestedMessagesTotal, s.Publisher.ConfirmedTotal = 0, 0
	}
	return steady(i, s)
}

// silentNow does not answer at the end.
func silentNow(i int, s *status) error {
	if i >= 100 {
		return fmt.Errorf("the daemon of /run/spool has not answered within 10s: it is stopped (kill -CONT continues it), its disk does not answer, or it hangs")
	}
	return outage(i+30, s)
}

// TestWatchScreen compares the screen with golden files: at a glance, is all well,
// what is wrong, what is to be done, and where does it go.
func TestWatchScreen(t *testing.T) {
	for _, tt := range []struct {
		name    string
		seconds int
		change  func(int, *status) error
		look    look
	}{
		{"steady", 90, steady, look{width: 100, height: 30, unicode: true}},
		{"outage", 190, outage, look{width: 100, height: 30, unicode: true}},
		{"outage-color", 190, outage, look{width: 100, height: 30, unicode: true, color: true}},
		{"outage-small", 190, outage, look{width: 80, height: 24}},
		{"drained", 215, drained, look{width: 100, height: 30, unicode: true}},
		{"restarted", 110, restarted, look{width: 100, height: 30, unicode: true}},
		{"silent", 130, silentNow, look{width: 100, height: 30, unicode: true}},
		{"first", 1, func(int, *status) error { return fmt.Errorf("the daemon of /run/spool is gone") }, look{width: 80, height: 24, unicode: true}},
		{"nothing-yet", 0, nil, look{width: 80, height: 24, unicode: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := began.Add(time.Duration(tt.seconds)*time.Second - 500*time.Millisecond)
			w := &watchScreen{look: tt.look, mountpoint: "/run/spool", history: script(tt.seconds, tt.change), now: now}
			lines := w.draw()
			checkFits(t, lines, tt.look)
			golden(t, "watch/"+tt.name+".txt", strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "\x1b", "␛"))
		})
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

func checkFits(t *testing.T, lines []string, k look) {
	t.Helper()
	if len(lines) > k.height {
		t.Errorf("%d lines on a screen of %d", len(lines), k.height)
	}
	for _, line := range lines {
		if !k.color && strings.Contains(line, "\x1b") {
			t.Errorf("escape codes without colour in %q", line)
		}
		if n := utf8.RuneCountInString(escapes.ReplaceAllString(line, "")); n > k.width {
			t.Errorf("%d columns on a screen of %d: %q", n, k.width, line)
		}
	}
}

// TestWatchScreen_Fits: no screen and no text is too small, large or odd.
func TestWatchScreen_Fits(t *testing.T) {
	odd := script(300, func(i int, s *status) error {
		if i%17 == 3 {
			return fmt.Errorf("odd\x1b[2J\n%s", strings.Repeat("long ", 100))
		}
		*s = status{Health: health{Level: levelCritical, Problems: []problem{{Level: levelCritical, Text: "evil\x1b]0;title\x07 " + strings.Repeat("x", 300), Advice: strings.Repeat("do it ", 90)}, {}, {}, {}, {}}}}
		s.Queue = queueStatus{messageCounts: messageCounts{Ready: 1 << 63, Dead: 1 << 62, Bytes: 1 << 60, OldestReadySeconds: 1e9}, FreeBytes: uint64(i)}
		s.Publisher = publisherStatus{State: "connecting\x1b[31m", ConfirmedTotal: uint64(i * i), LastError: "\x00\xff"}
		return nil
	})
	for _, h := range []history{odd, odd[:1], odd[:4], nil} {
		for _, width := range []int{1, 5, 20, 79, 300} {
			for _, height := range []int{1, 3, 24, 100} {
				k := look{width: width, height: height, unicode: true}
				w := &watchScreen{look: k, mountpoint: "/m", history: h, now: began.Add(300 * time.Second)}
				checkFits(t, w.draw(), k)
			}
		}
	}
}

// TestHistory_Rate: rates are right between samples, over a restart of the daemon,
// and unknown where nobody has answered.
func TestHistory_Rate(t *testing.T) {
	h := script(110, restarted)
	at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
	for _, tt := range []struct {
		from, to, want float64
		ok             bool
	}{
		{10, 20, 120, true}, {10.25, 10.5, 120, true}, {90, 200, 120, true}, {-5, 3, 120, true}, {200, 210, 0, false},
	} {
		got, ok := h.rate(ingested, at(tt.from), at(tt.to))
		if ok != tt.ok || ok && (got < tt.want-0.01 || got > tt.want+0.01) {
			t.Errorf("from %g to %g: %g, %t, want %g", tt.from, tt.to, got, ok, tt.want)
		}
	}
	for i, v := range h.rates(ingested, at(109), 109, time.Second) {
		if silent := i >= 40 && i < 69; silent != (v == noValue) {
			t.Errorf("second %d: %g", i, v)
		}
	}
}
