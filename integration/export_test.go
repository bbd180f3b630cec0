package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// runToFile runs the binary, with its output in a file, and returns the exit code
// and what it said.
func runToFile(t testing.TB, out string, args ...string) (int, string) {
	t.Helper()
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var stderr bytes.Buffer
	cmd := exec.Command(raceBinary, args...)
	cmd.Stdout, cmd.Stderr = f, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// succeed runs the binary, which must end well.
func succeed(t testing.TB, args ...string) {
	t.Helper()
	if code, said := runToFile(t, os.DevNull, args...); code != 0 {
		t.Fatalf("%v: exit code %d\n%s", args, code, said)
	}
}

// sickStore is the store of a daemon that was killed, with so many files of two
// messages, a dead letter and a partial file.
func sickStore(t *testing.T, files int) (store string, ids []string) {
	t.Helper()
	s := startSpool(t, deadBroker, "--exchange", "x")
	writeFiles(t, s.dir, 0, files)
	s.sh(`echo garbage > $M/junk; printf '{"torn' > $M/torn; echo '` + record("held") + `' > $M/x.tmp`)
	s.until("done with ingesting", func() bool {
		q := s.status().Queue
		return int(q.Ready) == 2*files && q.Dead == 1 && q.Partial == 1
	})
	s.kill()
	ids = s.stored().ids
	slices.Sort(ids)
	return s.store, ids
}

// checkMoved checks that a spool that was killed has what the sick one had, and
// each once.
func checkMoved(t *testing.T, s *spool, ids []string) {
	t.Helper()
	got := s.stored()
	slices.Sort(got.ids)
	checkTexts(t, "ids", got.ids, ids)
	checkTexts(t, "dead", got.dead, []string{"garbage"})
	checkTexts(t, "partial", got.partial, []string{`{"torn`})
}

// TestImport_Twice: a bundle goes into a running daemon, which is killed on the
// way and started again; it is imported again, and once more: each message is
// there once, with its id (section 3.6 of the design). Who is no operator may not.
func TestImport_Twice(t *testing.T) {
	files := times(1500, 20_000)
	store, ids := sickStore(t, files)
	bundle := filepath.Join(t.TempDir(), "bundle")
	code, said := runToFile(t, bundle, "export", "--store", store)
	if code != 0 || !strings.Contains(said, "1 files with temporary names") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	s := startSpool(t, deadBroker, "--exchange", "x")
	s.handOf(alice).refuses(order{Call: "open", Path: ".status/import", Flags: unix.O_WRONLY}, unix.EACCES)
	p := runProgram(t, "import", bundle, s.dir)
	s.until("importing", func() bool { return s.status().Queue.Ready > 0 })
	s.kill()
	p.wait()
	s.start()
	for range 2 {
		succeed(t, "import", bundle, s.dir)
	}
	// And by hand, as the file is described.
	s.sh("cat " + bundle + " > $M/.status/import")
	s.kill()
	checkMoved(t, s, ids)
	text, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	if err := os.WriteFile(bundle, bytes.Replace(text, []byte("/a"), []byte("/c"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := runToFile(t, os.DevNull, "import", bundle, s.dir); code != 65 || !strings.Contains(said, "no bundle") {
		t.Errorf("exit code %d for a bundle that was changed, want 65\n%s", code, said)
	}
	other := filepath.Join(t.TempDir(), "other")
	succeed(t, "import", "--store", other, bundle)
	again := filepath.Join(t.TempDir(), "again")
	if code, said := runToFile(t, again, "export", "--store", other); code != 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	if first, second := bundleBody(t, bundle), bundleBody(t, again); first != second {
		t.Errorf("a bundle of %d bytes is one of %d bytes behind a store", len(first), len(second))
	}
}

// bundleBody is a bundle without its head.
func bundleBody(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), "\n")
	return body
}

// TestDrain_To: a sick node's store is moved to a healthy one, and both the move
// and the daemon are killed on the way: all arrives, with its ids, and the store is
// empty.
func TestDrain_To(t *testing.T) {
	files := times(1000, 10_000)
	store, ids := sickStore(t, files)
	s := startSpool(t, deadBroker, "--exchange", "x")
	for i := range 3 {
		p := runProgram(t, "drain", "--store", store, "--to", s.dir)
		pause := time.NewTimer(time.Duration(50+100*i) * time.Millisecond)
		<-pause.C
		if i == 1 {
			s.kill()
			s.start()
		} else {
			p.cmd.Process.Kill()
		}
		p.wait()
	}
	succeed(t, "drain", "--store", store, "--to", s.dir)
	s.kill()
	got := s.stored()
	slices.Sort(got.ids)
	repeats := len(got.ids)
	got.ids = slices.Compact(got.ids)
	checkTexts(t, "ids", got.ids, ids)
	t.Logf("%d messages, %d repeats", len(got.ids), repeats-len(got.ids))
	if len(got.dead) == 0 || len(got.partial) == 0 {
		t.Errorf("dead %q, partial %q", got.dead, got.partial)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if code, said := runToFile(t, empty, "export", "--store", store); code != 0 || bundleBody(t, empty) != "" {
		t.Errorf("exit code %d, and there are messages left\n%s", code, said)
	}
}

// TestImport_Diskqueue: a retry file of sr3 is imported, twice, and what waits is
// exported as one and taken by another store.
func TestImport_Diskqueue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "diskqueue_post_retry_000")
	text := ""
	for i := range 5 {
		text += strings.Replace(record(fmt.Sprint("d/", i)), "{", `{"py/object": "sarracenia.Message", "_format": "v03", "_deleteOnPost": {"py/set": ["_format", "new_dir"]}, "new_dir": "/x", `, 1) + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startSpool(t, deadBroker, "--exchange", "x")
	for range 2 {
		succeed(t, "import", file, s.dir)
	}
	s.kill()
	first := s.stored()
	out := filepath.Join(t.TempDir(), "diskqueue")
	if code, said := runToFile(t, out, "export", "--store", s.store, "--format", "diskqueue"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	s2 := newSpool(t, raceBinary, deadBroker, "--exchange", "x")
	succeed(t, "import", "--store", s2.store, out)
	second := s2.stored()
	if len(first.pending) != 5 || strings.Contains(first.pending[0], "new_dir") {
		t.Errorf("imported %q", first.pending)
	}
	checkTexts(t, "behind an export for sr3", second.pending, first.pending)
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("junk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _ := runToFile(t, os.DevNull, "import", "--store", s2.store, junk); code != 65 {
		t.Errorf("exit code %d for junk, want 65", code)
	}
}
