package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testTimeout is the time for a request in tests.
const testTimeout = time.Second

// rig is a keeper that runs.
type rig struct {
	t      *testing.T
	dir    string
	broken string // the file that breaks workers
	opts   Options
	log    *syncBuffer

	keeper *Keeper
	stop   context.CancelFunc
	done   chan struct{}
	err    error // of Run, once done is closed
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newRig prepares a keeper.
func newRig(t *testing.T) *rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("mounting needs root")
	}
	r := &rig{t: t, dir: t.TempDir(), broken: filepath.Join(t.TempDir(), "broken"), log: &syncBuffer{}}
	t.Setenv(brokenEnv, r.broken)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	r.opts = Options{
		Binary: "/proc/self/exe", Dir: r.dir, RequestTimeout: testTimeout, StopTimeout: 5 * time.Second,
		Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", r.log)
		}
	})
	return r
}

// mount starts the keeper with a mount of its own.
func (r *rig) mount() {
	r.t.Helper()
	k, err := New(r.opts)
	if err != nil {
		r.t.Fatal(err)
	}
	r.run(k)
	r.until("serving", func() bool { return r.ask("x") == served })
}

func (r *rig) run(k *Keeper) {
	ctx, cancel := context.WithCancelCause(context.Background())
	r.keeper, r.stop, r.done = k, func() { cancel(errors.New("test")) }, make(chan struct{})
	done := r.done
	go func() {
		defer close(done)
		r.err = k.Run(ctx)
	}()
	r.t.Cleanup(func() {
		cancel(nil)
		<-done
		k.Close() // frees who waits for an answer
		for unix.Unmount(r.dir, unix.MNT_DETACH) == nil {
			continue
		}
	})
}

// ended waits for the end of Run.
func (r *rig) ended() error {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(time.Minute):
		r.t.Fatal("Run did not end within a minute")
	}
	return r.err
}

func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); !cond(); <-ticker.C {
		if time.Now().After(deadline) {
			r.t.Fatalf("not %s within a minute", what)
		}
	}
}

func (r *rig) untilLogged(text string) {
	r.t.Helper()
	r.until(fmt.Sprintf("logged: %q", text), func() bool { return strings.Contains(r.log.String(), text) })
}

// begin has a client look for names in the mount.
func (r *rig) begin(names ...string) (answers func() []unix.Errno) {
	r.t.Helper()
	args := []string{"client"}
	for _, name := range names {
		args = append(args, filepath.Join(r.dir, name))
	}
	cmd := exec.Command("/proc/self/exe", args...)
	out := &bytes.Buffer{}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return func() []unix.Errno {
		r.t.Helper()
		select {
		case err := <-ended:
			if err != nil {
				r.t.Fatal(err)
			}
		case <-time.After(time.Minute):
			r.t.Fatalf("no answer to %q within a minute", names)
		}
		var errnos []unix.Errno
		for _, line := range strings.Fields(out.String()) {
			n, err := strconv.Atoi(line)
			if err != nil {
				r.t.Fatal(err)
			}
			errnos = append(errnos, unix.Errno(n))
		}
		return errnos
	}
}

// ask looks for one name.
func (r *rig) ask(name string) unix.Errno {
	r.t.Helper()
	return r.begin(name)()[0]
}

// workerPID finds the worker among our children; 0 if there is none.
func workerPID() int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		pid, rest, _ := strings.Cut(string(text), " ")
		_, rest, _ = strings.Cut(rest, ") ")
		fields := strings.Fields(rest)
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(os.Getpid()) && bytes.Contains(cmdline, []byte("\x00worker\x00")) {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	return 0
}

// signal sends a signal to the worker there is.
func (r *rig) signal(s unix.Signal) (pid int) {
	r.t.Helper()
	r.until("served by a worker", func() bool { pid = workerPID(); return pid != 0 })
	if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		r.t.Fatal(err)
	}
	return pid
}

// TestKeeper_ReplacesWorker proves K1: who waits for an answer when the worker is
// killed, or comes after that, gets his answer.
func TestKeeper_ReplacesWorker(t *testing.T) {
	r := newRig(t)
	r.mount()
	names := make([]string, 2000)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	answers := r.begin(append(names, "slow")...)
	for range 10 {
		pid := r.signal(unix.SIGKILL)
		r.until("replaced", func() bool { now := workerPID(); return now != 0 && now != pid })
	}
	for i, errno := range answers() {
		if errno != served {
			t.Fatalf("answer %d is %v", i, errno)
		}
	}
	if log := r.log.String(); strings.Count(log, "cause=\"signal 9 (killed)\" gap_ms=") < 1 {
		t.Error("the log does not tell cause and gap")
	}
	r.stop()
	if err := r.ended(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if errno := r.ask("x"); errno != unix.ENOENT {
		t.Errorf("after the stop the directory below says %v", errno)
	}
}

// TestKeeper_ReplacesHungWorker proves K2 for a request, and that one that waits
// for the disk is left alone.
func TestKeeper_ReplacesHungWorker(t *testing.T) {
	r := newRig(t)
	r.mount()
	if errno := r.ask("disk"); errno != served {
		t.Errorf("the request that waits for the disk: %v", errno)
	}
	if strings.Contains(r.log.String(), "hangs") {
		t.Error("a worker that waits for the disk was taken for hung")
	}
	if errno := r.ask("hang once"); errno != served {
		t.Errorf("the request that hung: %v", errno)
	}
	r.untilLogged("hangs at a request")
	if errno := r.ask("hang"); errno != unix.EIO {
		t.Errorf("the request that hangs always: %v", errno)
	}
}

// TestKeeper_ReplacesStoppedWorker proves K2 for a worker that does nothing at all.
func TestKeeper_ReplacesStoppedWorker(t *testing.T) {
	r := newRig(t)
	r.mount()
	r.signal(unix.SIGSTOP)
	if errno := r.ask("x"); errno != served {
		t.Errorf("got %v", errno)
	}
	r.untilLogged("says nothing any more")
}

// TestKeeper_RefusesPoison proves K3: the request that each worker dies of gets
// EIO, and no other does.
func TestKeeper_RefusesPoison(t *testing.T) {
	r := newRig(t)
	r.mount()
	for range 3 {
		var others []func() []unix.Errno
		for range 5 {
			others = append(others, r.begin("slow", "slow", "slow", "x"))
		}
		if errno := r.ask("crash"); errno != unix.EIO {
			t.Errorf("the poison: %v", errno)
		}
		for _, answers := range others {
			for _, errno := range answers() {
				if errno != served {
					t.Errorf("another: %v", errno)
				}
			}
		}
	}
	if n := strings.Count(r.log.String(), "has cost too many workers"); n != 3 {
		t.Errorf("%d requests were refused, want 3", n)
	}
}

// TestKeeper_BlamesNoBystander: K3. A request that was in hand when a worker was
// killed is not to blame for others that die before they serve.
func TestKeeper_BlamesNoBystander(t *testing.T) {
	r := newRig(t)
	r.mount()
	answers := r.begin("hang once", "slow", "x")
	r.until("in hand", func() bool { return len(r.keeper.memory.InHand()) > 0 })
	if err := os.WriteFile(r.broken, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.signal(unix.SIGKILL)
	r.until("dead often enough", func() bool { return strings.Count(r.log.String(), "died before it served") > 2*fatal })
	if err := os.Remove(r.broken); err != nil {
		t.Fatal(err)
	}
	for i, errno := range answers() {
		if errno != served {
			t.Errorf("answer %d is %v", i, errno)
		}
	}
	if strings.Contains(r.log.String(), "has cost too many workers") {
		t.Error("a request was refused that no worker had died of")
	}
}

// TestKeeper_Unfit: K4. When no worker will ever be able to go on, nobody waits for
// one.
func TestKeeper_Unfit(t *testing.T) {
	r := newRig(t)
	r.opts.WorkerTimeout = time.Hour
	r.mount()
	if err := os.WriteFile(r.broken, []byte("unfit"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.signal(unix.SIGKILL)
	if err := r.ended(); !errors.Is(err, ErrNoWorker) || !strings.Contains(err.Error(), "a test says so") {
		t.Errorf("Run: %v", err)
	}
	if errno := r.ask("x"); errno != unix.ENOTCONN {
		t.Errorf("the mount says %v", errno)
	}
}

// TestKeeper_GivesUp proves K4.
func TestKeeper_GivesUp(t *testing.T) {
	r := newRig(t)
	r.opts.WorkerTimeout = 2 * time.Second
	r.mount()
	if err := os.WriteFile(r.broken, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.signal(unix.SIGKILL)
	r.untilLogged("died before it served")
	answers := r.begin("x", "y")
	if err := r.ended(); !errors.Is(err, ErrNoWorker) {
		t.Errorf("Run: %v", err)
	}
	for i, errno := range answers() {
		if errno != unix.ECONNABORTED && errno != unix.ENOTCONN {
			t.Errorf("answer %d is %v", i, errno)
		}
	}
	if errno := r.ask("x"); errno != unix.ENOTCONN {
		t.Errorf("later: %v", errno)
	}
}

// TestKeeper_FirstWorkerFails: there is no mount then, and Run tells the exit code.
func TestKeeper_FirstWorkerFails(t *testing.T) {
	r := newRig(t)
	if err := os.WriteFile(r.broken, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	k, err := New(r.opts)
	if err != nil {
		t.Fatal(err)
	}
	r.run(k)
	var exit *ExitError
	if err := r.ended(); !errors.As(err, &exit) || exit.Code != 3 {
		t.Errorf("Run: %v", err)
	}
	if errno := r.ask("x"); errno != unix.ENOENT {
		t.Errorf("the directory says %v", errno)
	}
}

// TestKeeper_NoBinary: a first worker that cannot be started at all.
func TestKeeper_NoBinary(t *testing.T) {
	r := newRig(t)
	r.opts.Binary = filepath.Join(r.dir, "missing")
	k, err := New(r.opts)
	if err != nil {
		t.Fatal(err)
	}
	r.run(k)
	if err := r.ended(); !errors.Is(err, ErrNoWorker) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("Run: %v", err)
	}
}

// TestKeeper_Unmounted: when somebody else unmounts, Run ends.
func TestKeeper_Unmounted(t *testing.T) {
	r := newRig(t)
	r.mount()
	if err := unix.Unmount(r.dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if err := r.ended(); err != nil {
		t.Errorf("Run: %v", err)
	}
}
