package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// watched is a spool that is asked over HTTP.
type watched struct {
	*spool
	client *http.Client
}

// newWatched prepares a spool that listens on a socket.
func newWatched(t testing.TB, brokerURL string, args ...string) *watched {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "http")
	s := newSpool(t, raceBinary, brokerURL, append(args, "--listen", "unix:"+socket)...)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}
	return &watched{s, &http.Client{Transport: transport, Timeout: time.Minute}}
}

// get asks for a page.
func (w *watched) get(path string) (code int, text string) {
	w.t.Helper()
	res, err := w.client.Get("http://spoolfs" + path)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.stderr)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// is reports whether /readyz and /livez have these codes, and the first names a
// problem.
func (w *watched) is(ready, live int, problem string) bool {
	w.t.Helper()
	r, text := w.get("/readyz")
	l, _ := w.get("/livez")
	return r == ready && l == live && strings.Contains(text, problem)
}

// put writes a file with a message.
func (w *watched) put() {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "f"), []byte(record("a")+"\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// TestHealth_BrokerAway: without its broker a spool is ready and live, and says what
// is wrong, for far longer than it may be stalled.
func TestHealth_BrokerAway(t *testing.T) {
	s := newWatched(t, deadBroker, "--exchange", "x", "--stalled-after", "500ms")
	s.start()
	s.until("well", func() bool { return s.is(200, 200, "ready, level ok") })
	s.put()
	s.until("aware of it", func() bool { return s.is(200, 200, "warning broker-away: ") })
	s.until("away for long", func() bool { return s.number("spoolfs_away_seconds{route=\"default\"}") > 3 })
	if code, text := s.get("/livez"); code != 200 || !strings.Contains(text, "what to do: ") {
		t.Errorf("/livez is %d %s", code, text)
	}
	if code, _ := s.get("/nothing"); code != 404 {
		t.Errorf("/nothing is %d", code)
	}
	if code, text := s.get("/debug/pprof/goroutine?debug=1"); code != 200 || !strings.Contains(text, "goroutine profile") {
		t.Errorf("the profile is %d %s", code, text)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
}

// TestHealth_BrokerFrozen: a broker that is there and says nothing, while messages
// wait, makes a spool not live; it still takes files (B2, O7).
func TestHealth_BrokerFrozen(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	after := "2s"
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		after = "1m" // and so over the replacement of the connection
	}
	s := newWatched(t, node.URL(), "--exchange", q.Exchange, "--stalled-after", after)
	s.start()
	s.put()
	s.untilSent()
	t.Cleanup(func() { node.Thaw() })
	if err := node.Freeze(); err != nil {
		t.Fatal(err)
	}
	s.put()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(4 * time.Minute); !s.is(200, 503, "critical stalled: "); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("it is not stalled:\n%s", s.summary())
		}
	}
	if err := node.Thaw(); err != nil {
		t.Fatal(err)
	}
	s.untilSent()
	s.until("well again", func() bool { return s.is(200, 200, "ready, level ok") })
}

// TestHealth_FullDisk: a full disk is not ready, lives, and is ready again when there
// is room.
func TestHealth_FullDisk(t *testing.T) {
	s := newWatched(t, deadBroker, "--exchange", "x")
	if err := os.Mkdir(s.store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", s.store, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(s.store, unix.MNT_DETACH) })
	s.start()
	s.until("well", func() bool { return s.is(200, 200, "ready, level ok") })
	other := filepath.Join(s.store, "somebody-elses")
	fillDisk(t, other)
	s.until("full", func() bool { return s.is(503, 200, "critical disk-full: ") })
	if n := s.number("spoolfs_ready"); n != 0 {
		t.Errorf("spoolfs_ready is %g", n)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	s.until("well again", func() bool { return s.is(200, 200, "ready, level ok") })
}

// TestHealth_Draining: a spool that takes no files is not ready, and one that is
// paused is.
func TestHealth_Draining(t *testing.T) {
	s := newWatched(t, deadBroker, "--exchange", "x")
	s.start()
	s.sh(`echo drain pause > $M/.status/ctl`)
	s.until("draining", func() bool { return s.is(503, 200, "warning draining: ") })
	s.until("paused", func() bool { return s.is(503, 200, "warning paused: ") })
	s.sh(`echo resume > $M/.status/ctl`)
	s.until("well", func() bool { return s.is(200, 200, "ready, level ok") })
}

// TestProbe: the process that asks the mount ends well if it answers, says so if it
// is dead, and can be ended while it waits, whatever the daemon does.
func TestProbe(t *testing.T) {
	s := startSpool(t, deadBroker, "--exchange", "x", "--no-keeper")
	probe := exec.Command(plainBinary, "probe", s.dir)
	if out, err := probe.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	s.signal(syscall.SIGSTOP)
	s.until("stopped", s.isStopped)
	probe = exec.Command(plainBinary, "probe", s.dir)
	if err := probe.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- probe.Wait() }()
	select {
	case err := <-ended:
		t.Errorf("a stopped daemon has answered: %v", err)
	case <-time.After(200 * time.Millisecond): // it cannot have an answer before SIGCONT
	}
	s.kill()
	if err := <-ended; err == nil {
		t.Error("a daemon that was killed has answered")
	}
	out, err := exec.Command(plainBinary, "probe", s.dir).CombinedOutput()
	if code := err.(*exec.ExitError).ExitCode(); code != 69 {
		t.Errorf("a dead mount gives %d: %s", code, out)
	}
}

// isStopped reports whether SIGSTOP has reached all threads.
func (s *spool) isStopped() bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.cmd.Process.Pid))
	if err != nil || len(tasks) == 0 {
		return false
	}
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		if err != nil || !strings.Contains(string(stat), ") T ") {
			return false
		}
	}
	return true
}

// TestListen_Refused: what cannot be listened on is told before anything is mounted,
// and a socket that was left is replaced.
func TestListen_Refused(t *testing.T) {
	s := newWatched(t, deadBroker, "--exchange", "x")
	s.start()
	other := newSpool(t, raceBinary, deadBroker, "--exchange", "x", s.args[len(s.args)-2], s.args[len(s.args)-1])
	other.launch()
	if code := other.wait(); code != 73 || !strings.Contains(other.stderr.String(), "somebody else listens there") {
		t.Errorf("exit code %d: %s", code, other.stderr)
	}
	s.kill()
	s.start()
	s.until("well", func() bool { return s.is(200, 200, "ready, level ok") })
}

// number is a metric by its name and labels, from the mount.
func (s *spool) number(name string) float64 {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, ".status", "metrics"))
	if err != nil {
		s.t.Fatal(err)
	}
	return numberIn(s.t, string(text), name)
}

func numberIn(t testing.TB, text, name string) float64 {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	var n float64
	if _, err := fmt.Sscan(value, &n); !found || err != nil {
		t.Fatalf("there is no %s in\n%s", name, text)
	}
	return n
}
