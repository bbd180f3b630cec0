package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// bubble is a daemon without a mount whose time runs as fast as the test: the real
// log, monitor, publisher and store.
type bubble struct {
	t   *testing.T
	d   *daemon
	log *lockedBuffer
}

// lockedBuffer is a log.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// inOutage runs a test with a daemon in a bubble.
func inOutage(t *testing.T, dial func(context.Context) (publisher.Session, error), test func(*bubble)) {
	// What asks the network or the machine is not for a bubble.
	dir := configDir(t, map[string]string{"main.yaml": "log_level: info\n"})
	flags, err := loadFrom(t, dir, "--store", "DIR/store", "--broker", "stdout:", "DIR/mnt")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		o := &bubble{t: t, log: &lockedBuffer{}}
		d, err := newDaemon(flags, &environment{ctx: t.Context(), stdout: io.Discard, stderr: o.log})
		if err != nil {
			t.Fatal(err)
		}
		o.d = d
		opts := d.publisherOptions(d.main.live.Load(), nil)
		opts.Dial = dial
		if d.main.publisher, err = publisher.New(opts); err != nil {
			t.Fatal(err)
		}
		unwatch, err := d.watch()
		if err != nil {
			t.Fatal(err)
		}
		d.monitor.enter(phaseServing)
		ctx, cancel := context.WithCancel(t.Context())
		published := make(chan error, 1)
		go func() { published <- d.main.publisher.Run(ctx) }()
		test(o)
		cancel()
		if err := <-published; err != nil {
			t.Error(err)
		}
		unwatch()
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
}

// append stores messages as closed files do.
func (o *bubble) append(n int) {
	o.t.Helper()
	file := queue.NewFileID()
	ms := make([]queue.Message, n)
	for i := range ms {
		ms[i] = queue.Message{ID: file.MessageID(uint32(i + 1)), Body: []byte("x"), Ingested: time.Now()}
	}
	if err := o.d.route.Append(ms); err != nil {
		o.t.Fatal(err)
	}
}

// kinds counts the lines by their text.
func (o *bubble) kinds() map[string]int {
	kinds := map[string]int{}
	for line := range strings.Lines(o.log.String()) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), "msg=")
		kind, _, _ := strings.Cut(text, "=")
		kinds[strings.Trim(kind[:max(0, strings.LastIndexByte(kind, ' '))], `"`)]++
	}
	return kinds
}

func (o *bubble) lines() int { return strings.Count(o.log.String(), "\n") }

// taking is a session with a broker that confirms everything, until it ends.
type taking struct {
	verdicts chan publisher.Verdict

	mu  sync.Mutex // guards what follows
	end bool
	err error
}

var _ publisher.Session = (*taking)(nil)

func newTaking() *taking { return &taking{verdicts: make(chan publisher.Verdict, 1<<12)} }

func (s *taking) Publish(p publisher.Publication) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.end {
		s.verdicts <- publisher.Verdict{Tag: p.Tag, Outcome: publisher.Confirmed}
	}
	return nil
}

func (s *taking) drop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.end {
		s.end, s.err = true, err
		close(s.verdicts)
	}
}

func (s *taking) Flush() error                       { return nil }
func (s *taking) Verdicts() <-chan publisher.Verdict { return s.verdicts }
func (s *taking) Blocked() string                    { return "" }
func (s *taking) Close() error                       { s.drop(nil); return nil }

func (s *taking) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// refusing is a broker that is away: each dial fails with another text, as the
// ports of the connections differ.
func refusing() func(context.Context) (publisher.Session, error) {
	port := 40_000
	return func(context.Context) (publisher.Session, error) {
		port++
		return nil, &publisher.Fault{Cause: publisher.Unreachable, Err: &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("from port %d: refused", port)}}
	}
}

// outageRate is how many messages come a second. A line for each of a hundred would
// be seen as well as for each of a thousand, which take the race detector minutes.
func outageRate() int {
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		return 1000
	}
	return 100
}

// TestLog_Outage: ten minutes without the broker, at a thousand messages a second,
// write fewer than a hundred lines; the outage has one line for its beginning, with
// what to do, one for its end, and a summary a minute (O5).
func TestLog_Outage(t *testing.T) {
	const minutes = 10
	away := refusing()
	rate := outageRate()
	var back atomic.Bool
	inOutage(t, func(ctx context.Context) (publisher.Session, error) {
		if back.Load() {
			return newTaking(), nil
		}
		return away(ctx)
	}, func(o *bubble) {
		for range minutes * 60 {
			o.append(rate)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		during := o.kinds()
		t.Logf("%d lines: %v", o.lines(), during)
		if n := during["cannot publish"]; n < 1 || n > 1+minutes/5 {
			t.Errorf("%d lines of the failure", n)
		}
		if n := during["summary"]; n < minutes-1 || n > minutes+1 {
			t.Errorf("%d summaries in %d minutes", n, minutes)
		}
		if failures := o.d.main.publisher.Stats().FailuresTotal; failures < 20 {
			t.Errorf("only %d attempts", failures)
		}
		back.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := o.d.main.publisher.Stats().ConfirmedTotal; got != uint64(minutes*60*rate) {
			t.Errorf("%d messages went out", got)
		}
		if n := o.kinds()["publishing again"]; n != 1 {
			t.Errorf("%d lines of the end", n)
		}
		if n := o.lines(); n >= 100 {
			t.Errorf("%d lines, want fewer than 100:\n%s", n, o.log)
		}
	})
}

// TestLog_Flapping: a broker that takes each connection and drops it after a moment,
// for ten minutes, does not flood the log either, and that lines are missing is
// said.
func TestLog_Flapping(t *testing.T) {
	inOutage(t, func(context.Context) (publisher.Session, error) {
		s := newTaking()
		time.AfterFunc(1300*time.Millisecond, func() { s.drop(errors.New("connection reset")) })
		return s, nil
	}, func(o *bubble) {
		for range 600 {
			o.append(10)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		kinds := o.kinds()
		t.Logf("%d lines: %v", o.lines(), kinds)
		if sessions := o.d.main.publisher.Stats().SessionsTotal; sessions < 100 {
			t.Errorf("only %d sessions", sessions)
		}
		for _, kind := range []string{"cannot publish", "publishing again"} {
			if n := kinds[kind]; n < logBurst || n > logBurst+11 {
				t.Errorf("%d lines of %s", n, kind)
			}
		}
		if !strings.Contains(o.log.String(), "not_logged=") {
			t.Errorf("nothing is said of what was left out:\n%s", o.log)
		}
		if n := o.lines(); n >= 100 {
			t.Errorf("%d lines of kinds %v", n, slices.Sorted(maps.Keys(kinds)))
		}
	})
}
