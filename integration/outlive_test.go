package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKeeper_GroupKilled proves G10 for a service whose manager keeps
// descriptors: keeper and worker are killed together, or stopped as for a restart
// of the service, and started again. Writers wait meanwhile. Who unmounts ends
// the mount all the same.
func TestKeeper_GroupKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	m := newServiceManager(t)
	s, w := newKept(t, plainBinary)
	m.equip(s)
	s.start()
	// This process has the connection, too: if a test that fails waited here for an
	// answer of the mount, nothing could end it.
	abort := time.AfterFunc(10*time.Minute, func() { unix.Unmount(s.dir, unix.MNT_FORCE) })
	defer abort.Stop()
	load := startBusy(t, s.dir, 8)
	pid := 0
	for i := range times(12, 100) {
		w.await(t, "another", func(now, _ int) bool { return now != pid })
		moment := time.NewTimer(time.Duration(1+random.IntN(400)) * time.Millisecond)
		<-moment.C
		if i%4 == 3 {
			if code := s.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if !mounted(t, s.dir) {
				t.Fatal("the stop of a service that is kept has unmounted")
			}
		} else {
			s.killAll(w)
		}
		if m.Stored() != 2 {
			t.Fatalf("%d descriptors are kept, want 2", m.Stored())
		}
		pid = w.current()
		m.equip(s)
		s.launch()
	}
	s.until("ready", func() bool { return strings.Contains(s.stderr.String(), "msg=ready") })
	load.finish()
	s.untilClosed()
	s.command("unmount", s.dir)
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if mounted(t, s.dir) {
		t.Error("the mount is still there")
	}
	s.until("forgotten", func() bool { return m.Stored() == 0 })
	for _, line := range []string{"READY=1", "STOPPING=1"} {
		if !m.Has(line) {
			t.Errorf("the service manager was not told %s", line)
		}
	}
	load.check(s.stored())
}

// killAll kills keeper and worker, as the end of a service's control group does.
func (s *spool) killAll(w *workerWatch) {
	s.t.Helper()
	s.cmd.Process.Kill()
	if err := unix.Kill(w.current(), unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		s.t.Fatal(err)
	}
	<-s.exited
}

// command runs a command of the program, which has to succeed.
func (s *spool) command(args ...string) string {
	s.t.Helper()
	out, err := s.tryCommand(args...)
	if err != nil {
		s.t.Fatalf("spoolfs %q: %v\n%s\n%s", args, err, out, s.stderr)
	}
	return out
}

func (s *spool) tryCommand(args ...string) (string, error) {
	out, err := exec.CommandContext(limit(s.t, 2*time.Minute), plainBinary, args...).CombinedOutput()
	return string(out), err
}

// install puts a program where a spool is started from.
func install(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to+".new", text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}

// TestKeeper_Upgrades proves G10 for upgrades: under load, keeper and worker are
// replaced time and again by the program on disk, without an error for a writer.
// A program that does not start is refused, and the old one goes on.
func TestKeeper_Upgrades(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "spoolfs")
	install(t, plainBinary, binary)
	s, _ := newKept(t, binary)
	s.start()
	load := startBusy(t, s.dir, 8)
	keeper, atFirst := s.status().Keeper, 0
	for i := range times(20, 100) {
		from := plainBinary
		if i%5 == 0 {
			from = raceBinary
		}
		install(t, from, binary)
		if out := s.command("upgrade", s.dir); !strings.Contains(out, "is now") {
			t.Errorf("upgrade says %q", out)
		}
		now := s.status().Keeper
		if now.PID != keeper.PID || now.WorkerPID == keeper.WorkerPID || now.Upgrades != keeper.Upgrades+1 {
			t.Errorf("after upgrade %d the processes are %+v, were %+v", i, now, keeper)
		}
		if keeper = now; i == 0 {
			atFirst = descriptors(t, keeper.PID)
		}
	}
	refuseUpgrade(t, s, binary)
	load.finish()
	s.untilClosed()
	// Nothing is left from one version to the next: no descriptor, no process.
	s.until("without more descriptors than after the first upgrade", func() bool { return descriptors(t, keeper.PID) <= atFirst })
	if n := len(children(t, keeper.PID)); n != 1 {
		t.Errorf("the keeper has %d processes, want one worker", n)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	load.check(s.stored())
}

// descriptors is how many a process has.
func descriptors(t testing.TB, pid int) int {
	t.Helper()
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// children are the processes of a process, also those that have ended and nobody
// has waited for.
func children(t testing.TB, pid int) []string {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			t.Fatal(err)
		}
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}

// TestKeeper_KilledKeeper: a worker does not outlive its keeper, whoever it runs as
// and even if it has been stopped: the mount is dead and not hung, the store is
// free, and the next start goes on with all that was closed.
func TestKeeper_KilledKeeper(t *testing.T) {
	const nobody = 65534
	s, w := newKept(t, plainBinary, "--user", fmt.Sprint(nobody))
	s.binary = filepath.Join(filepath.Dir(s.dir), "spoolfs") // where the user can read it
	install(t, plainBinary, s.binary)
	var want []string
	for i, stopped := range []bool{false, true} {
		s.start()
		h := s.newHand()
		name := fmt.Sprint("closed", i)
		h.put(name, record(name)+"\n")
		want = append(want, record(name))
		fd := h.create("open")
		worker := w.current()
		if stopped {
			if err := unix.Kill(worker, unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		waitGone(t, worker)
		<-s.exited
		h.refuses(order{Call: "write", FD: fd, Data: []byte("x")}, deadMount...)
		h.refuses(order{Call: "open", Path: "late", Flags: unix.O_CREAT | unix.O_WRONLY}, deadMount...)
	}
	checkTexts(t, "stored", s.stored().pending, want)
}

// waitGone waits for the end of a process.
func waitGone(t testing.TB, pid int) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); unix.Kill(pid, 0) == nil; <-ticker.C {
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(state), ") Z ") {
			return // it has ended, and belongs to whoever waits for orphans
		}
		if time.Now().After(deadline) {
			unix.Kill(pid, unix.SIGKILL)
			t.Fatalf("process %d is still there after a minute", pid)
		}
	}
}

// refuseUpgrade tries programs that cannot take over.
func refuseUpgrade(t *testing.T, s *spool, binary string) {
	t.Helper()
	before := s.status().Keeper
	for _, script := range []string{
		"#!/bin/sh\necho a bug >&2; exit 5\n",                                          // always
		"#!/bin/sh\n[ \"$2\" = --check ] || exit 5\nexec " + plainBinary + " \"$@\"\n", // only to serve
	} {
		if err := os.WriteFile(binary+".new", []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(binary+".new", binary); err != nil {
			t.Fatal(err)
		}
		out, err := s.tryCommand("upgrade", s.dir)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 69 || !strings.Contains(out, "the old version goes on") {
			t.Errorf("an upgrade to a program that does not start: %v\n%s", err, out)
		}
	}
	now := s.status().Keeper
	if now.PID != before.PID || now.UpgradeFailures != before.UpgradeFailures+2 || now.UpgradeError == "" {
		t.Errorf("after failed upgrades the keeper is %+v, was %+v", now, before)
	}
}

// failing is the program built with what has it fail on purpose.
var failing struct {
	once sync.Once
	path string
	err  error
}

func failingBinary(t testing.TB) string {
	t.Helper()
	failing.once.Do(func() {
		failing.path = filepath.Join(filepath.Dir(plainBinary), "failing")
		out, err := exec.Command("go", "build", "-tags=failpoints", "-o", failing.path, "spoolfs/cmd/spoolfs").CombinedOutput()
		if err != nil {
			failing.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if failing.err != nil {
		t.Fatal(failing.err)
	}
	return failing.path
}

// TestKeeper_BadRequests: a request that a worker hangs at, or dies of, is answered
// with EIO after three workers, and reported. What others do meanwhile succeeds.
func TestKeeper_BadRequests(t *testing.T) {
	s, _ := newKept(t, failingBinary(t), "--request-timeout", "2s")
	s.start()
	load := startBusy(t, s.dir, 4)
	for _, name := range []string{"crash.1", "hang.1", "crash.2"} {
		h := s.newHand()
		h.refuses(order{Call: "open", Path: name, Flags: unix.O_CREAT | unix.O_WRONLY}, unix.EIO)
	}
	load.finish()
	s.untilClosed()
	if k := s.status().Keeper; k.Refused != 3 || k.Deaths < 9 {
		t.Errorf("the keeper tells of %d refused requests and %d deaths, want 3 and 9", k.Refused, k.Deaths)
	}
	if n := strings.Count(s.stderr.String(), "has cost too many workers"); n != 3 {
		t.Errorf("%d requests were reported, want 3", n)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	load.check(s.stored())
}

// TestKeeper_NoWorker: when no worker can start, writers get an error after the
// time that they are to wait at most, and the program ends and says why. The next
// start replaces the dead mount, and what was closed is there.
func TestKeeper_NoWorker(t *testing.T) {
	s, w := newKept(t, plainBinary, "--worker-timeout", "3s")
	s.start()
	h := s.newHand()
	h.put("before", record("before")+"\n")
	fd := h.create("open")
	away := s.store + ".away"
	if err := os.Rename(s.store, away); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.store, []byte("no store"), 0o600); err != nil {
		t.Fatal(err)
	}
	pid, _ := w.await(t, "there", func(pid, _ int) bool { return pid != 0 })
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	dead := []syscall.Errno{unix.ECONNABORTED, unix.ENOTCONN}
	h.refuses(order{Call: "write", FD: fd, Data: []byte("x")}, dead...)
	h.refuses(order{Call: "open", Path: "late", Flags: unix.O_CREAT | unix.O_WRONLY}, dead...)
	if code := s.wait(); code != 69 {
		t.Errorf("exit code %d, want 69", code)
	}
	for _, text := range []string{"no worker can serve", "died before it served"} {
		if !strings.Contains(s.stderr.String(), text) {
			t.Errorf("the log does not say %q:\n%s", text, s.stderr)
		}
	}
	if err := os.Rename(away, s.store); err == nil || os.Remove(s.store) != nil || os.Rename(away, s.store) != nil {
		t.Fatalf("the store cannot be put back: %v", err)
	}
	s.start()
	s.newHand().put("after", record("after")+"\n")
	s.untilIngested(1)
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkTexts(t, "queued", s.stored().pending, []string{record("before"), record("after")})
}

// TestKeeper_User: the workers run as a user who has the store and nothing else,
// and everybody can write.
func TestKeeper_User(t *testing.T) {
	const nobody = 65534
	s, w := newKept(t, plainBinary, "--user", fmt.Sprint(nobody))
	s.binary = filepath.Join(filepath.Dir(s.dir), "spoolfs") // where the user can read it
	install(t, plainBinary, s.binary)
	s.start()
	for i := range 4 {
		pid, _ := w.await(t, "there", func(pid, _ int) bool { return pid != 0 })
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(status), fmt.Sprintf("\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", nobody)) {
			t.Errorf("the worker is another user:\n%s", status)
		}
		for _, uid := range []uint32{0, 1000, nobody} {
			s.handOf(uid).put(fmt.Sprint(i), record(fmt.Sprintf("%d-%d", uid, i))+"\n")
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		w.await(t, "another", func(now, _ int) bool { return now != pid })
	}
	s.untilClosed()
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := len(s.stored().pending); got != 12 {
		t.Errorf("%d messages, want 12", got)
	}

	if err := os.Chown(s.store, 0, 0); err != nil {
		t.Fatal(err)
	}
	s.launch()
	if code := s.wait(); code != 78 || !strings.Contains(s.stderr.String(), "chown -R") {
		t.Errorf("with a store of root's: exit code %d\n%s", code, s.stderr)
	}
}
