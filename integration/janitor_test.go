package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/integration/rabbit"
)

// program is a run of the binary that mounts nothing.
type program struct {
	t      testing.TB
	cmd    *exec.Cmd
	stderr *output
	exited chan struct{}
}

// runProgram starts "spoolfs ARGS...".
func runProgram(t testing.TB, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(raceBinary, args...), stderr: &output{}, exited: make(chan struct{})}
	p.cmd.Stderr = p.stderr
	p.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(p.exited); p.cmd.Wait() }()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.exited
		if strings.Contains(p.stderr.String(), "DATA RACE") || t.Failed() {
			t.Errorf("%s said:\n%s", args[0], p.stderr)
		}
	})
	return p
}

// wait waits for the end and returns the exit code.
func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("the program did not end within two minutes:\n%s", p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// says waits until the program has said something.
func (p *program) says(text string) {
	p.t.Helper()
	within(p.t, time.Minute, "program that says "+text, func() bool { return strings.Contains(p.stderr.String(), text) })
}

// within waits for a condition.
func within(t testing.TB, d time.Duration, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within %s", what, d)
		}
	}
}

// writeFiles writes files of two records each.
func writeFiles(t testing.TB, dir string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		text := record(fmt.Sprint(i, "/a")) + "\n" + record(fmt.Sprint(i, "/b")) + "\n"
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("post_retry.host.%d", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// checkRecords checks that the records of files are there, and nothing else but
// repeats with the same id.
func checkRecords(t testing.TB, got []rabbit.Delivery, files int) {
	t.Helper()
	seen, ids := map[string]string{}, map[string]bool{}
	for _, d := range got {
		text := strings.TrimSuffix(string(d.Body), "\n")
		if id, ok := seen[text]; ok && id != d.MessageID {
			t.Errorf("%s came with the ids %s and %s", text, id, d.MessageID)
		}
		seen[text], ids[d.MessageID] = d.MessageID, true
	}
	t.Logf("%d messages, %d repeats", len(seen), len(got)-len(seen))
	for i := range files {
		for _, half := range []string{"/a", "/b"} {
			if seen[record(fmt.Sprint(i, half))] == "" {
				t.Errorf("%d%s is lost", i, half)
			}
		}
	}
	if len(seen) != 2*files || len(ids) != len(seen) {
		t.Errorf("%d messages with %d ids, want %d", len(seen), len(ids), 2*files)
	}
}

// fileConfig is a configuration with a broker whose password is in a file of its
// own, and more lines.
func fileConfig(t testing.TB, node *rabbit.Node, more string) string {
	t.Helper()
	dir := t.TempDir()
	config, secret := filepath.Join(dir, "spoolfs.yaml"), filepath.Join(dir, "password")
	broker := strings.Replace(node.URL(), "guest:guest@", "guest@", 1)
	for path, text := range map[string]string{config: "broker: " + broker + "\npassword_file: " + secret + "\n" + more, secret: "guest\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// TestJanitor_Once: directories are emptied, what is in them is published, and the
// program ends, without a mount. One of them comes later, and one file is no
// message.
func TestJanitor_Once(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	writeFiles(t, dir, 0, 300)
	if err := os.WriteFile(filepath.Join(dir, "junk"), []byte("junk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fileConfig(t, node, "exchange: xs_nobody\nstore: "+store+"\njanitor_age: 1s\njanitor: /nowhere\n")
	p := runProgram(t, "janitor", "--config", config, "--once", "--limit", "2m", "--exchange", q.Exchange, dir, dir+"/")
	if code := p.wait(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	checkRecords(t, consume(t, q, 600), 300)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != ".spoolfs-quarantine" {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestJanitor_Killed: two janitors with stores of their own empty one directory
// and publish to one broker. Both are killed again and again; all arrives, and
// what arrives twice has the same id (J1, J3, G3).
func TestJanitor_Killed(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	dir := t.TempDir()
	files := times(1000, 10_000)
	start := func(store string) *program {
		return runProgram(t, "janitor", "--janitor-age", "1s", "--claim-timeout", "2s", "--store", store,
			"--broker", node.URL(), "--exchange", q.Exchange, dir)
	}
	stores := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	running := []*program{start(stores[0]), start(stores[1])}
	kills := times(6, 60)
	for i := range kills {
		writeFiles(t, dir, i*files/kills, (i+1)*files/kills)
		p := running[i%2]
		// Either of them may take all.
		within(t, 2*time.Minute, "taken files", func() bool { return filesIn(dir) < files/kills })
		p.cmd.Process.Kill()
		p.wait()
		running[i%2] = start(stores[i%2])
	}
	within(t, 2*time.Minute, "empty directory", func() bool { return filesIn(dir) == 0 })
	for i, p := range running {
		p.cmd.Process.Signal(syscall.SIGTERM)
		if code := p.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		// What the stop did not send.
		if code := runProgram(t, "drain", "--store", stores[i], "--broker", node.URL(), "--exchange", q.Exchange).wait(); code != 0 {
			t.Errorf("exit code %d of the drain", code)
		}
	}
	got, err := q.Drain(limit(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	checkRecords(t, got, files)
}

// filesIn counts the files of a directory, claimed or not. A claim that gets
// another name meanwhile counts, since there may be files in it.
func filesIn(dir string) (n int) {
	filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			n++
		}
		return nil
	})
	return n
}

// TestDrain_DeadNode: the store of a daemon that was killed is copied elsewhere
// and drained there; interrupted on the way, it loses nothing. Held files and dead
// letters stay.
func TestDrain_DeadNode(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	s := startSpool(t, deadBroker, "--exchange", "x")
	writeFiles(t, s.dir, 0, 400)
	s.sh(`echo garbage > $M/junk; echo '` + record("held") + `' > $M/x.tmp`)
	s.until("done with ingesting", func() bool { q := s.status().Queue; return q.Ready == 800 && q.Dead == 1 })
	s.kill()
	store := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-r", s.store, store).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// Nobody answers.
	p := runProgram(t, "drain", "--store", store, "--broker", deadBroker, "--exchange", q.Exchange, "--limit", "1s")
	if code := p.wait(); code != 75 || !strings.Contains(p.stderr.String(), "800 messages are still in") {
		t.Errorf("exit code %d, want 75 and how many are left", code)
	}
	p = runProgram(t, "drain", "--store", store, "--broker", deadBroker, "--exchange", q.Exchange)
	p.says("cannot publish")
	p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.wait(); code != 75 {
		t.Errorf("exit code %d after an interrupt, want 75", code)
	}
	for i := range 3 { // killed while it sends
		p = runProgram(t, "drain", "--store", store, "--broker", node.URL(), "--exchange", q.Exchange, "--rate", fmt.Sprint(200*(i+1)))
		pause := time.NewTimer(300 * time.Millisecond)
		<-pause.C
		p.cmd.Process.Kill()
		p.wait()
	}
	config := fileConfig(t, node, "exchange: "+q.Exchange+"\nstore: "+store+"\nmountpoint: "+s.dir+"\n")
	p = runProgram(t, "drain", "--config", config)
	if code := p.wait(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if text := p.stderr.String(); !strings.Contains(text, " 0 left") || !strings.Contains(text, "1 dead letters") {
		t.Errorf("it said\n%s", text)
	}
	got, err := q.Drain(limit(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	checkRecords(t, got, 400)
}

// TestDrain_Disk: a store on a disk that is full is drained, one that cannot be
// written to is refused with a reason, and none is made where there is none.
func TestDrain_Disk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=128m"); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	store := filepath.Join(disk, "store")
	s := newSpool(t, raceBinary, deadBroker, "--exchange", "x")
	s.args[1] = store
	s.start()
	writeFiles(t, s.dir, 0, 100)
	s.untilIngested(200)
	s.until("prepared for a full disk", func() bool {
		var st unix.Stat_t
		err := unix.Stat(filepath.Join(store, "BALLAST"), &st)
		return err == nil && st.Blocks*512 >= 32<<20 // the whole of it
	})
	s.kill()
	within(t, time.Minute, "without a writer", func() bool { // the worker dies just after its keeper
		err := unix.Mount("none", disk, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, "size=128m")
		if err != nil && err != unix.EBUSY {
			t.Fatal(err)
		}
		return err == nil
	})
	p := runProgram(t, "drain", "--store", store, "--broker", "stdout:", "--exchange", "x")
	if code := p.wait(); code != 74 || !strings.Contains(p.stderr.String(), "read-only") {
		t.Errorf("exit code %d on a read-only disk, want 74", code)
	}
	if err := unix.Mount("none", disk, "tmpfs", unix.MS_REMOUNT, "size=128m"); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 128<<20), 0o600)
	p = runProgram(t, "drain", "--store", store, "--broker", "stdout:", "--exchange", "x", "--limit", "1m")
	if code := p.wait(); code != 0 || !strings.Contains(p.stderr.String(), "200 messages sent, 0 left") {
		t.Errorf("exit code %d on a full disk", code)
	}
	p = runProgram(t, "drain", "--store", disk, "--broker", "stdout:", "--exchange", "x")
	if code := p.wait(); code != 64 {
		t.Errorf("exit code %d where there is no store, want 64", code)
	}
}

// TestMount_Janitor: a daemon empties the plain directories of its configuration,
// too, before and after they are there.
func TestMount_Janitor(t *testing.T) {
	first, later := t.TempDir(), filepath.Join(t.TempDir(), "later")
	s := startSpool(t, deadBroker, "--exchange", "x", "--janitor", first, "--janitor", later, "--janitor-age", "1s")
	writeFiles(t, first, 0, 10)
	if err := os.Mkdir(later, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, later, 10, 20)
	s.until("done with the directories", func() bool { return s.janitorFiles() == 20 })
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.dir, link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"janitor", s.dir}, {"janitor", filepath.Join(s.dir, "sub")}, {"janitor", link}, {"mount", "--no-keeper", "--janitor", later, later}} {
		p := runProgram(t, append(args[:1:1], append([]string{"--config", "/dev/null", "--store", t.TempDir(), "--broker", "stdout:"}, args[1:]...)...)...)
		if code := p.wait(); code != 64 || !strings.Contains(p.stderr.String(), "name plain directories") {
			t.Errorf("%q: exit code %d, want 64 and why", args, code)
		}
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := s.stored(); len(got.pending) != 40 {
		t.Errorf("%d messages, want 40", len(got.pending))
	}
}

// TestMount_StopPaused: a stop does not wait for a publisher that is paused.
func TestMount_StopPaused(t *testing.T) {
	s := startSpool(t, "stdout:", "--exchange", "x", "--stop-send", "1h")
	s.command("pause", s.dir)
	writeFiles(t, s.dir, 0, 10)
	s.untilIngested(20)
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := s.stored(); len(got.pending) != 20 {
		t.Errorf("%d messages are left, want 20", len(got.pending))
	}
}

// TestMount_StopEmpty: with --stop-empty a stop waits for a broker that is away.
func TestMount_StopEmpty(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	stopBroker(t, node)
	s := startSpool(t, node.URL(), "--exchange", q.Exchange, "--stop-empty", "--stop-send", "2m")
	writeFiles(t, s.dir, 0, 50)
	s.untilIngested(100)
	s.signal(syscall.SIGTERM)
	s.until("stopping", func() bool { return strings.Contains(s.stderr.String(), "msg=stopping") })
	startBroker(t, node)
	select {
	case <-s.exited:
	case <-time.After(2 * time.Minute):
		t.Fatal("it did not stop")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkRecords(t, consume(t, q, 100), 50)
}
