package integration

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// helperMount is a spool that mount.fuse.spoolfs has mounted, or is to.
type helperMount struct {
	t                     testing.TB
	helper                string
	dir, store, log, base string
	path                  string // PATH, if not the usual one
}

// away is a broker that is never there.
const away = "amqp://guest:secret@127.0.0.1:1/"

func newHelperMount(t testing.TB) *helperMount {
	t.Helper()
	base := t.TempDir()
	m := &helperMount{
		t: t, base: base, helper: filepath.Join(base, "mount.fuse.spoolfs"),
		dir: filepath.Join(base, "mnt"), store: filepath.Join(base, "store"), log: filepath.Join(base, "log"),
	}
	if err := errors.Join(os.Symlink(raceBinary, m.helper), os.Mkdir(m.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.end)
	return m
}

// run runs the helper with the options, and returns what it said and its exit code.
func (m *helperMount) run(options string, flags ...string) (string, int) {
	m.t.Helper()
	args := append([]string{"none", m.dir}, flags...)
	if options != "" {
		args = append(args, "-o", options)
	}
	cmd := exec.Command(m.helper, args...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	if m.path != "" {
		cmd.Env = append(cmd.Env, "PATH="+m.path)
	}
	out, err := cmd.CombinedOutput() // waits for all who have its stderr: the daemon must not
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// options are those of a spool without a broker.
func (m *helperMount) options(more ...string) string {
	return strings.Join(append([]string{"store=" + m.store, "broker=" + away, "exchange=x", "log=" + m.log}, more...), ",")
}

func (m *helperMount) spool() *spool {
	return &spool{t: m.t, dir: m.dir, store: m.store, stderr: &output{}, exited: make(chan struct{})}
}

func (m *helperMount) isMounted() bool {
	m.t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.Contains(string(text), " "+m.dir+" fuse.spoolfs ")
}

func (m *helperMount) end() {
	for unix.Unmount(m.dir, unix.MNT_DETACH) == nil {
		continue
	}
	waitFor(m.t, "the daemon to end", func() bool { return len(m.daemons()) == 0 })
	if text, _ := os.ReadFile(m.log); bytes.Contains(text, []byte("DATA RACE")) || m.t.Failed() {
		m.t.Errorf("the log:\n%s", text)
	}
}

// daemons are the processes that serve the mount: their command line names it.
func (m *helperMount) daemons() (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		words := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
		if words[len(words)-1] == m.dir {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// waitFor waits for a condition.
func waitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !cond() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// TestMountHelper_Usable: when mount.fuse.spoolfs returns a file can be written.
// The daemon has a session of its own and nothing of who has mounted, its password
// shows nowhere, and it ends with umount.
func TestMountHelper_Usable(t *testing.T) {
	m := newHelperMount(t)
	out, code := m.run(m.options("rw", "_netdev", "nofail", "x-systemd.automount", "x-systemd.device-timeout=5", "user", "nodev",
		"comment=a,max-bytes=64MiB", "status_group=daemon", `topic="a,b"`, `vhost=c\,d`, "nokeeper", "keeper"), "-n")
	if code != 0 || out != "" {
		t.Fatalf("exit code %d: %s", code, out)
	}
	s := m.spool()
	if err := os.WriteFile(filepath.Join(m.dir, "f"), []byte(record("a")), 0o644); err != nil {
		t.Fatal(err)
	}
	s.untilIngested(1)
	config, err := os.ReadFile(filepath.Join(m.dir, ".status", "config"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"max_bytes 64MiB\n", "topic a,b\n", "vhost c,d\n", "status_group daemon\n", "keeper true\n", "store " + m.store + "\n"} {
		if !strings.Contains(string(config), want) {
			t.Errorf("no %q in\n%s", want, config)
		}
	}
	daemons := m.daemons()
	if len(daemons) != 2 {
		t.Errorf("%d processes serve the mount, want keeper and worker", len(daemons))
	}
	for _, pid := range daemons {
		m.checkDaemon(pid)
	}
	if text, _ := os.ReadFile("/proc/self/mounts"); !strings.Contains(string(text), "\nnone "+m.dir+" fuse.spoolfs ") {
		t.Errorf("the source is not that of the call:\n%s", text)
	}
	if out, err := exec.Command("umount", m.dir).CombinedOutput(); err != nil {
		t.Fatalf("umount: %v: %s", err, out)
	}
	waitFor(t, "the daemon to end", func() bool { return len(m.daemons()) == 0 })
	if text, _ := os.ReadFile(m.log); !strings.Contains(string(text), "msg=ready") {
		t.Errorf("the log is\n%s", text)
	}
}

func (m *helperMount) checkDaemon(pid string) {
	m.t.Helper()
	for _, fd := range []string{"0", "1"} {
		if to, _ := os.Readlink("/proc/" + pid + "/fd/" + fd); to != os.DevNull {
			m.t.Errorf("descriptor %s of %s is %s", fd, pid, to)
		}
	}
	number, err := strconv.Atoi(pid)
	if err != nil {
		m.t.Fatal(err)
	}
	// It leaves when the mount is there, and the helper returns then.
	waitFor(m.t, pid+" to have left our session", func() bool {
		session, err := unix.Getsid(number)
		ours, _ := unix.Getsid(0)
		return err == nil && session != ours
	})
	for _, file := range []string{"cmdline", "environ"} {
		if text, _ := os.ReadFile("/proc/" + pid + "/" + file); bytes.Contains(text, []byte("secret")) {
			m.t.Errorf("the password shows in %s of %s", file, pid)
		}
	}
	if dir, _ := os.Readlink("/proc/" + pid + "/cwd"); dir != "/" {
		m.t.Errorf("%s works in %s", pid, dir)
	}
}

// TestMountHelper_Refuses: what cannot be mounted is told, with mount(8)'s exit
// codes.
func TestMountHelper_Refuses(t *testing.T) {
	m := newHelperMount(t)
	config := filepath.Join(m.base, "wrong.yaml")
	if err := os.WriteFile(config, []byte("exchnge: x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.base, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, options string
		flags         []string
		code          int
		says          string
	}{
		{"unknown", m.options("max_byte=1"), nil, 1, `did you mean "max_bytes"?`},
		{"value", m.options("window=many"), nil, 1, "--window"},
		{"no value", m.options("topic"), nil, 1, "needs a value"},
		{"quote", m.options(`topic="a`), nil, 1, "within a quote"},
		{"ro", m.options("ro"), nil, 1, "leave out ro"},
		{"remount", m.options("remount"), nil, 1, "SIGHUP"},
		{"namespace", m.options(), []string{"-N", "1"}, 1, "nsenter"},
		{"flag", m.options(), []string{"-x"}, 1, "-x is not known"},
		{"third word", m.options(), []string{"word"}, 1, "want: mount.fuse.spoolfs"},
		{"no broker", "store=" + m.store, nil, 1, "no broker is given"},
		{"stdout", "store=" + m.store + ",broker=stdout:", nil, 1, "in a terminal"},
		{"configuration", m.options("config=" + config), nil, 1, `wrong.yaml:1: unknown key "exchnge", did you mean "exchange"?`},
		{"log", m.options("log=relative"), nil, 32, "absolute path"},
		{"store", m.options("store=" + m.base + "/file"), nil, 32, "not a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, code := m.run(c.options, c.flags...)
			if code != c.code || !strings.Contains(out, c.says) || !strings.HasPrefix(out, "mount.fuse.spoolfs: ") {
				t.Errorf("exit code %d, want %d, and %q in:\n%s", code, c.code, c.says, out)
			}
			if strings.Contains(out, "secret") {
				t.Errorf("the password shows in %s", out)
			}
			if m.isMounted() || len(m.daemons()) > 0 {
				t.Error("something is there")
			}
		})
	}
}

// TestMountHelper_Fake: -f does all but the mount, -s passes over what it does not
// know.
func TestMountHelper_Fake(t *testing.T) {
	m := newHelperMount(t)
	out, code := m.run(m.options("what=ever"), "-sfv")
	if code != 0 || !strings.HasPrefix(out, "spoolfs mount ") || m.isMounted() {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, err := os.Stat(m.store); err == nil {
		t.Error("it has made the store")
	}
}

// TestMountHelper_Twice: a mount that is there already is left alone.
func TestMountHelper_Twice(t *testing.T) {
	m := newHelperMount(t)
	if out, code := m.run(m.options()); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	out, code := m.run(m.options())
	if code != 32 || !strings.Contains(out, "in use by another daemon") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if err := os.WriteFile(filepath.Join(m.dir, "f"), []byte(record("a")), 0o644); err != nil {
		t.Error(err)
	}
}

// TestMountHelper_Syslog: without a file for it the log goes to logger(1), with
// priorities, beginning with what was said before the mount was there.
func TestMountHelper_Syslog(t *testing.T) {
	m := newHelperMount(t)
	bin := filepath.Join(m.base, "bin")
	m.path = bin + ":" + os.Getenv("PATH")
	logger := "#!/bin/sh\necho \"$@\" >>" + m.log + "\nexec cat >>" + m.log + "\n"
	if err := errors.Join(os.Mkdir(bin, 0o755), os.WriteFile(filepath.Join(bin, "logger"), []byte(logger), 0o755)); err != nil {
		t.Fatal(err)
	}
	options := "store=" + m.store + ",broker=" + away + ",exchange=x"
	if out, code := m.run(options); code != 0 || out != "" {
		t.Fatalf("exit code %d: %s", code, out)
	}
	text := func() string {
		text, _ := os.ReadFile(m.log)
		return string(text)
	}
	waitFor(t, "the log", func() bool { return strings.Contains(text(), "<6>level=INFO msg=ready") })
	if !strings.Contains(text(), "--tag spoolfs --priority daemon.info --prio-prefix\n") {
		t.Errorf("logger got\n%s", text())
	}
	keeper := m.spool().status().Keeper.PID
	if err := syscall.Kill(keeper, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the last lines", func() bool { return strings.Contains(text(), "msg=stopped") })
}
