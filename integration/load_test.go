package integration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
)

// The load of these tests; SPOOLFS_CHAOS multiplies the kills.
const (
	loadWriters = 64
	loadFiles   = 200
)

// TestMount_WritersDoNotWaitForBroker proves G5 and G6 (D24): 64 processes write 200
// files each while the broker is stopped; each write returns at once, and all
// arrive, each once and in the order of its writer, when the broker is back.
func TestMount_WritersDoNotWaitForBroker(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	stopBroker(t, node)
	s := newSpool(t, plainBinary, node.URL(), "--exchange", q.Exchange)
	s.start()

	start := time.Now()
	reports := startWriters(t, s.dir, loadWriters, loadFiles, false).finish()
	took := time.Since(start)
	mid, worst := median(reports)
	t.Logf("%d files in %s, %.0f a second; a write takes %s at the median, %s at most",
		loadWriters*loadFiles, took.Round(time.Millisecond), loadWriters*loadFiles/took.Seconds(), mid, worst)
	if mid > time.Second {
		t.Errorf("a write takes %s at the median, want at most a second", mid)
	}
	s.untilIngested(loadWriters * loadFiles)
	if names := s.names(); len(names) != 1 || names[0] != ".status" {
		t.Errorf("the mount lists %q", names)
	}
	if st := s.status(); st.Queue.Ready != loadWriters*loadFiles || st.Publisher.ConfirmedTotal != 0 || st.Publisher.LastError == "" {
		t.Errorf("while the broker is stopped the status is %+v", st)
	}
	startBroker(t, node)
	s.untilSent()
	checkArrivals(t, reports, consume(t, q, loadWriters*loadFiles), 0)
	if st := s.status(); st.Publisher.ConfirmedTotal != loadWriters*loadFiles || st.Queue.Dead != 0 {
		t.Errorf("after the drain the status is %+v", st)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.stderr)
	}
}

// TestMount_KilledDaemonKeepsClosedFiles proves G1: the daemon is killed at
// random moments while 64 processes write, and mounted again each time. No file
// is lost whose close had returned 0, and none comes twice.
func TestMount_KilledDaemonKeepsClosedFiles(t *testing.T) {
	kills := 10
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		kills = 100
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	node := brokerNode(t)
	q := newQueue(t, node)
	stopBroker(t, node)
	s := startSpool(t, node.URL(), "--exchange", q.Exchange)

	w := startWriters(t, s.dir, loadWriters, loadFiles, true)
	for range kills {
		moment := time.NewTimer(time.Duration(20+random.IntN(300)) * time.Millisecond)
		<-moment.C
		// A monitor that has just looked must not make the dead mount look
		// alive to the next daemon.
		if _, err := os.Stat(s.dir); err != nil {
			t.Fatal(err)
		}
		s.kill()
		s.start()
	}
	reports := w.finish()
	accepted, failed := 0, 0
	for _, r := range reports {
		accepted += len(r.Accepted)
		failed += r.Failed
	}
	_, worst := median(reports)
	t.Logf("%d kills: %d files accepted, %d attempts failed, longest write %s", kills, accepted, failed, worst)
	s.untilIngested(0)
	startBroker(t, node)
	s.untilSent()
	got, err := q.Drain(limit(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	checkArrivals(t, reports, got, 0)
	if failed == 0 {
		t.Error("no attempt failed: the kills hit nothing")
	}
}

// checkArrivals compares what arrived with what the writers reported: every
// accepted attempt exactly once, in the order of its writer but for those that the
// daemon counts as late, and of the failed ones none more than once.
func checkArrivals(t testing.TB, reports []writerReport, got []rabbit.Delivery, late uint64) {
	t.Helper()
	place := map[string]int{}
	ids := map[string]bool{}
	for i, d := range got {
		var m struct{ RelPath string }
		if err := json.Unmarshal(d.Body, &m); err != nil {
			t.Fatalf("body %q: %v", d.Body, err)
		}
		if _, ok := place[m.RelPath]; ok {
			t.Errorf("%s arrived twice", m.RelPath)
		}
		if d.MessageID == "" || ids[d.MessageID] {
			t.Errorf("message id %q of %s is not new", d.MessageID, m.RelPath)
		}
		ids[d.MessageID] = true
		place[m.RelPath] = i + 1
	}
	wrong := 0
	for writer, r := range reports {
		last, lastPath := 0, ""
		for file, attempt := range r.Accepted {
			path := attemptPath(writer, file, attempt)
			at := place[path]
			switch {
			case at == 0:
				t.Errorf("%s is lost", path)
				wrong++
			case at < last && late > 0:
				t.Logf("%s arrived before %s, which was late", path, lastPath)
				late--
			case at < last:
				t.Errorf("%s arrived before %s, which was closed earlier", path, lastPath)
				wrong++
			}
			last, lastPath = at, path
			if wrong > 20 {
				t.Fatal("and more")
			}
		}
	}
	if t.Failed() {
		t.Log(fmt.Sprint(len(got), " messages arrived"))
	}
}
