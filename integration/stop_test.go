package integration

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deadBroker is a broker that refuses connections: port 1 is nobody's.
const deadBroker = "amqp://guest:secret@127.0.0.1:1/"

// mounted reports whether something is mounted on a directory.
func mounted(t testing.TB, dir string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), " "+dir+" ")
}

// TestMount_StopLetsFilesFinish: SIGTERM takes no new files, waits for open
// ones, sends them, unmounts and exits 0.
func TestMount_StopLetsFilesFinish(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	s := startSpool(t, node.URL(), "--exchange", q.Exchange, "--stop-files", "1m")
	f, err := os.Create(filepath.Join(s.dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGTERM)
	s.until("read-only", func() bool {
		g, err := os.Create(filepath.Join(s.dir, "g"))
		if err == nil {
			g.Close()
			return false
		}
		return strings.Contains(err.Error(), "read-only")
	})
	if _, err := fmt.Fprintln(f, record("a")); err != nil {
		t.Errorf("write to an open file while stopping: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("close of an open file while stopping: %v", err)
	}
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.stderr)
	}
	if mounted(t, s.dir) {
		t.Error("still mounted")
	}
	consume(t, q, 1)
}

// TestMount_StopKeepsWhatIsNotSent: with the broker away a stop is quick, and
// everything is there at the next start, also what a stop cut short (D13).
func TestMount_StopKeepsWhatIsNotSent(t *testing.T) {
	s := startSpool(t, deadBroker, "--exchange", "x", "--stop-files", "100ms")
	s.sh(fmt.Sprintf(`for i in $(seq 50); do echo '%s' > $M/f$i; done`, record("a")))
	s.untilIngested(50)
	s.until("waiting for the broker", func() bool { return s.status().Publisher.State == "waiting" })
	f, err := os.Create(filepath.Join(s.dir, "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, record("a"))
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.stderr)
	}
	t.Logf("stopped within %s", time.Since(start).Round(time.Millisecond))
	if mounted(t, s.dir) {
		t.Error("still mounted")
	}
	if log := s.stderr.String(); strings.Contains(log, "secret") {
		t.Errorf("the log has the password:\n%s", log)
	}
	s.start()
	if q := s.status().Queue; q.Ready != 51 || q.Dead != 0 {
		t.Errorf("after the restart the queue is %+v, want 51 ready", q)
	}
	if text := s.summary(); strings.Contains(text, "secret") {
		t.Errorf("the summary has the password:\n%s", text)
	}
}

// TestMount_SecondSignal: a second signal does not wait for anything.
func TestMount_SecondSignal(t *testing.T) {
	s := startSpool(t, "stdout:", "--stop-files", "1h")
	f, err := os.Create(filepath.Join(s.dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s.signal(syscall.SIGTERM)
	s.until("stopping", func() bool { return strings.Contains(s.stderr.String(), "msg=stopping") })
	// One that follows at once is the same stop: it comes to the group, too.
	again := time.NewTimer(400 * time.Millisecond)
	<-again.C
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 75 {
		t.Errorf("exit code %d, want 75:\n%s", code, s.stderr)
	}
}

// TestMount_SurvivesLogout: neither the end of a login nor the death of who reads
// the log ends the daemon.
func TestMount_SurvivesLogout(t *testing.T) {
	s := newSpool(t, raceBinary, "stdout:")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.log = w
	s.launch()
	w.Close()
	log := bufio.NewReader(r)
	if text, err := log.ReadString('\n'); err != nil || !strings.Contains(text, "msg=ready") {
		t.Fatalf("the log begins with %q, %v", text, err)
	}
	r.Close()
	s.signal(syscall.SIGHUP)
	s.sh(`echo garbage > $M/f`) // which is logged
	s.until("done with the bad line", func() bool { return s.status().Queue.Dead == 1 })
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestMount_UnmountedByOthers: umount(8) stops the daemon, softly.
func TestMount_UnmountedByOthers(t *testing.T) {
	s := startSpool(t, "stdout:")
	if err := unix.Unmount(s.dir, 0); err != nil {
		t.Fatal(err)
	}
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.stderr)
	}
}

// TestMount_WaitsForTheStore: a start waits for the lock of a store whose owner
// is just dying, and then replaces its dead mount.
func TestMount_WaitsForTheStore(t *testing.T) {
	s := startSpool(t, "stdout:")
	old, oldExited := s.cmd, s.exited
	s.launch()
	s.until("started", func() bool { return processState(s.cmd.Process.Pid) == "S" })
	if err := old.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-oldExited
	s.until("ready", func() bool { return strings.Contains(s.stderr.String(), "msg=ready") })
	s.sh(fmt.Sprintf(`echo '%s' > $M/f`, record("a")))
	s.untilIngested(1)
}

// processState is the letter of ps.
func processState(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

// TestMount_RefusesClearly: what cannot work ends at once, with an exit code and
// a message that says what to do.
func TestMount_RefusesClearly(t *testing.T) {
	held := startSpool(t, "stdout:")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	newer, mnt := filepath.Join(dir, "newer"), filepath.Join(dir, "mnt")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{newer, mnt} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(newer, "FORMAT"), []byte("spoolfs store 99\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "store")
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"mount", "--store", store, dir}, 64, "no broker is given: use --broker="},
		{[]string{"mount", "--broker", "stdout:", dir}, 64, "--store"},
		{[]string{"mount", "--store", store, "--broker", "amqp://h/", dir}, 64, "use --exchange=NAME"},
		{[]string{"mount", "--store", store, "--broker", "http://u:secret@h/", "--exchange", "x", dir}, 64, "want amqp://"},
		{[]string{"mount", "--store", store, "--broker", "guest:secret@h:5672/", "--exchange", "x", dir}, 64, "want amqp://"},
		{[]string{"mount", "--store", store, "--broker", "amqp:u:secret@h/", "--exchange", "x", dir}, 64, "want amqp://"},
		{[]string{"mount", "--store", store, "--broker", "amqp://u:12/secret@h/v", "--exchange", "x", dir}, 64, "percent-encode"},
		{[]string{"mount", "--store", store, "--broker", "amqp://u:12#secret@h/v", "--exchange", "x", dir}, 64, "percent-encode"},
		{[]string{"mount", "--store", store, "--broker", "amqp://u:sec%zzret@h/", "--exchange", "x", dir}, 64, "percent-encode"},
		{[]string{"mount", "--store", store, "--broker", "stdout:", "--window", "0", dir}, 64, "--window: at least one"},
		{[]string{"mount", "--store", filepath.Join(dir, "in/it"), "--broker", "stdout:", dir}, 64, "lies within the mountpoint"},
		{[]string{"mount", "--store", store, "--broker", "stdout:", filepath.Join(dir, "missing")}, 73, "make it with mkdir"},
		{[]string{"mount", "--store", store, "--broker", "stdout:", file}, 73, "not a directory"},
		{[]string{"mount", "--store", held.store, "--broker", "stdout:", dir}, 75, "in use by another process"},
		{[]string{"mount", "--store", store + "2", "--broker", "stdout:", held.dir}, 75, "mountpoint is in use by another daemon"},
		{[]string{"mount", "--store", newer, "--broker", "stdout:", mnt}, 78, "written by a newer version"},
		{[]string{"status", dir}, 69, "no spool is mounted"},
		{[]string{"frobnicate"}, 64, "frobnicate"},
	} {
		out, err := exec.CommandContext(limit(t, 30*time.Second), plainBinary, tt.args...).CombinedOutput()
		code := 0
		if err != nil {
			code = err.(*exec.ExitError).ExitCode()
		}
		if code != tt.code || !strings.Contains(string(out), tt.want) {
			t.Errorf("spoolfs %q: exit code %d, want %d with %q:\n%s", tt.args, code, tt.code, tt.want, out)
		}
		if strings.Contains(string(out), "secret") {
			t.Errorf("spoolfs %q shows the password:\n%s", tt.args, out)
		}
	}
}
