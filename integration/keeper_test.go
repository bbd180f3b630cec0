package integration

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// workerWatch sees in the log of a keeper which worker there is.
type workerWatch struct {
	mu     sync.Mutex
	rest   []byte
	pid    int
	ready  int // that have become ready
	change chan struct{}
}

func newWorkerWatch() *workerWatch { return &workerWatch{change: make(chan struct{})} }

var startedWorker = regexp.MustCompile(`msg="a worker has been started" pid=(\d+)`)

// Write takes a part of the log.
func (w *workerWatch) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		w.rest = rest
		if m := startedWorker.FindSubmatch(line); m != nil {
			w.pid, _ = strconv.Atoi(string(m[1]))
		} else if bytes.Contains(line, []byte("msg=ready")) {
			w.ready++
		} else {
			continue
		}
		close(w.change)
		w.change = make(chan struct{})
	}
}

// current is the worker there is.
func (w *workerWatch) current() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pid
}

// await waits until something holds, and returns the worker there is then.
func (w *workerWatch) await(t testing.TB, what string, holds func(pid, ready int) bool) (pid, ready int) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		w.mu.Lock()
		pid, ready, change := w.pid, w.ready, w.change
		w.mu.Unlock()
		if holds(pid, ready) {
			return pid, ready
		}
		select {
		case <-change:
		case <-deadline:
			t.Fatalf("no worker that is %s within two minutes", what)
		}
	}
}

// startKept starts a spool with a keeper that tells about its workers. It is built
// as it ships: the race detector makes starts longer than what these tests want
// to hit.
func startKept(t testing.TB, args ...string) (*spool, *workerWatch) {
	t.Helper()
	s, w := newKept(t, plainBinary, args...)
	s.start()
	return s, w
}

func newKept(t testing.TB, binary string, args ...string) (*spool, *workerWatch) {
	t.Helper()
	s := newSpool(t, binary, deadBroker, append([]string{"--exchange", "x", "--keeper", "--log-level", "debug"}, args...)...)
	w := newWorkerWatch()
	s.tee = w
	return s, w
}

// killWorkers kills one worker after the other, half of them 1 to 120 ms after
// they have been started, half of them as long after they serve.
func killWorkers(t testing.TB, w *workerWatch, kills int, random *rand.Rand) {
	t.Helper()
	ready := 0
	pid, _ := w.await(t, "ready", func(_, ready int) bool { return ready > 0 })
	for i := range kills {
		if i%2 == 1 {
			before := ready
			pid, _ = w.await(t, "ready", func(_, ready int) bool { return ready > before })
		}
		moment := time.NewTimer(time.Duration(1+random.IntN(120)) * time.Millisecond)
		<-moment.C
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			t.Fatal(err)
		}
		killed := pid
		pid, ready = w.await(t, "another", func(pid, _ int) bool { return pid != killed })
	}
}

// gaps reports how long writers were without a worker.
func (s *spool) gaps() string {
	worst, sum, n := 0, 0, 0
	for _, m := range regexp.MustCompile(`gap_ms=(\d+)`).FindAllStringSubmatch(s.stderr.String(), -1) {
		gap, _ := strconv.Atoi(m[1])
		worst, sum, n = max(worst, gap), sum+gap, n+1
	}
	return fmt.Sprintf("%d gaps, %d ms on average, %d ms at most", n, sum/max(n, 1), worst)
}

// TestKeeper_KilledWorker proves G10: while eight processes use files in every
// way, half of them in a storm of signals, and others are killed, the worker is
// killed at random moments, also while it starts and takes over. No writer gets
// an error, nothing is lost, and nothing comes twice. It is so where the kernel
// sends requests again, and where they are taken from the memory.
func TestKeeper_KilledWorker(t *testing.T) {
	for _, variant := range []struct {
		name  string
		args  []string
		kills int
	}{
		{"resend", nil, times(100, 1000)},
		{"journal", []string{"--no-resend"}, times(30, 300)},
	} {
		t.Run(variant.name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			s, w := startKept(t, variant.args...)
			load := startBusy(t, s.dir, 8)
			start := time.Now()
			killWorkers(t, w, variant.kills, rand.New(rand.NewPCG(seed, 0)))
			t.Logf("%d kills in %s; %s", variant.kills, time.Since(start).Round(time.Millisecond), s.gaps())
			if files := load.finish(); files < 48 {
				t.Errorf("%d files are no load", files)
			}
			s.untilClosed()
			if code := s.stop(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, s.stderr)
			}
			if mounted(t, s.dir) {
				t.Error("the mount is still there")
			}
			load.check(s.stored())
			if strings.Contains(s.stderr.String(), "panic") {
				t.Errorf("the log:\n%s", s.stderr)
			}
		})
	}
}
