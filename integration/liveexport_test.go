package integration

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bundledIDs are the ids of a bundle by the states of their messages.
func bundledIDs(t *testing.T, path string) map[string][]string {
	t.Helper()
	ids := map[string][]string{}
	for _, line := range lines(bundleBody(t, path)) {
		var m struct{ State, ID string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		ids[m.State] = append(ids[m.State], m.ID)
	}
	return ids
}

// TestExport_Live: the spool of a running daemon is exported, whose worker is
// killed meanwhile: each message is in the bundle once, and what is imported of it
// is what there was. Who is no operator may not, and the store itself is in use.
func TestExport_Live(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s, w := startKept(t)
	files := times(1500, 50_000)
	writeFiles(t, s.dir, 0, files)
	s.sh(`echo garbage > $M/junk; printf '{"torn' > $M/torn; echo '` + record("held") + `' > $M/x.tmp`)
	s.until("done with ingesting", func() bool {
		q := s.status().Queue
		return int(q.Ready) == 2*files && q.Dead == 1 && q.Partial == 1
	})
	for _, name := range []string{"export", "export.ready.0.0.default"} {
		s.handOf(alice).refuses(order{Call: "open", Path: ".status/" + name, Flags: unix.O_RDONLY}, unix.EACCES)
	}
	bundle := filepath.Join(t.TempDir(), "bundle")
	if code, said := runToFile(t, bundle, "export", "--store", s.store); code != 75 || !strings.Contains(said, "spoolfs export MOUNTPOINT") {
		t.Errorf("exit code %d for a store in use, want 75 and what to do\n%s", code, said)
	}
	out, err := os.Create(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var said bytes.Buffer
	cmd := exec.Command(raceBinary, "export", "--answer-within", "1m", s.dir)
	cmd.Stdout, cmd.Stderr = out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killWorkers(t, w, times(4, 40), rand.New(rand.NewPCG(seed, 0)))
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "1 files with temporary names") {
		t.Fatalf("%v\n%s", err, &said)
	}
	s.killAll(w)
	was := s.stored().ids
	got := bundledIDs(t, bundle)
	slices.Sort(was)
	slices.Sort(got["ready"])
	checkTexts(t, "ids", got["ready"], was)
	if len(got["dead"]) != 1 || len(got["partial"]) != 1 {
		t.Errorf("dead %q, partial %q", got["dead"], got["partial"])
	}
	other := startSpool(t, deadBroker, "--exchange", "x")
	succeed(t, "import", bundle, other.dir)
	other.kill()
	checkMoved(t, other, was)
}

// TestExport_LivePaused: with writers at work, a daemon that is paused exports all
// that was there at the beginning, and as a retry file of sr3, too.
func TestExport_LivePaused(t *testing.T) {
	s := startSpool(t, deadBroker, "--exchange", "x")
	succeed(t, "pause", s.dir)
	writeFiles(t, s.dir, 0, 500)
	s.untilIngested(1000)
	bundle := filepath.Join(t.TempDir(), "bundle")
	stop, ended := make(chan struct{}), make(chan error, 1)
	written := 1000
	go func() {
		var err error
		for running := true; running && err == nil; written++ {
			err = os.WriteFile(filepath.Join(s.dir, "w"), []byte(record("while")+"\n"), 0o600)
			select {
			case <-stop:
				running = false
			default:
			}
		}
		ended <- err
	}()
	code, said := runToFile(t, bundle, "export", s.dir)
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.untilIngested(uint64(written))
	if code != 0 || strings.Contains(said, "pause") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	ids := bundledIDs(t, bundle)["ready"]
	if n := len(ids); n < 1000 || n > written {
		t.Errorf("%d messages, want 1000 to %d", n, written)
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != len(ids) {
		t.Errorf("%d of %d ids are there twice", len(ids)-n, len(ids))
	}
	retry := filepath.Join(t.TempDir(), "diskqueue_post_retry_000")
	if code, said := runToFile(t, retry, "export", "--format", "diskqueue", s.dir); code != 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	text, err := os.ReadFile(retry)
	if n := bytes.Count(text, []byte("\n")); err != nil || n != written {
		t.Errorf("%d lines, %v, want %d", n, err, written)
	}
}
