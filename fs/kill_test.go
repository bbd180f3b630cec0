package fs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/fs/device"
	"spoolfs/fs/ingest"
	"spoolfs/fs/shm"
	"spoolfs/queue"
)

// A worker is this program as a process that serves a mount which its parent has
// made, on descriptor 3, with the memory on 4. It ends when its standard input
// does, or is killed.
const (
	workerEnv = "SPOOLFS_FS_WORKER" // its store
	userEnv   = "SPOOLFS_FS_USER"   // a process that uses the mount: directory, name, seed
)

func runWorker(store string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	q, stages, err := queue.Open(store, queue.Options{Logger: log})
	if err != nil {
		return err
	}
	memory, err := shm.Open(4)
	if err != nil {
		return err
	}
	route, err := q.Route("default")
	if err != nil {
		return err
	}
	f, err := New(Options{
		Route: route, Format: ingest.NewSarracenia(ingest.SarraceniaOptions{}), Memory: memory, Logger: log,
		Linger: 200 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if err := f.Recover(stages); err != nil {
		return err
	}
	m, err := f.Serve(3)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	// The kernel sends the RELEASE of a file some time after its last close.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(f.Drain(ctx), m.Stop(), q.Close())
}

// worker is a running worker.
type worker struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   *bytes.Buffer
	ready chan struct{} // closed when it serves, or will never
}

// killRig is a mount that outlives its workers.
type killRig struct {
	t      *testing.T
	dir    string
	store  string
	device *device.Device
	memory *shm.Memory
}

func newKillRig(t *testing.T, resend bool) *killRig {
	t.Helper()
	k := &killRig{t: t, dir: t.TempDir(), store: t.TempDir()}
	var err error
	if k.device, err = device.Open(k.dir); err != nil {
		t.Fatal(err)
	}
	if k.memory, err = shm.Create(shm.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := k.memory.SetInit(k.device.Init); err != nil {
		t.Fatal(err)
	}
	if resend && !k.device.Resend {
		t.Skip("this kernel does not send requests again")
	}
	k.memory.SetResends(resend)
	t.Cleanup(func() {
		if err := errors.Join(k.device.Detach(), k.device.Close(), k.memory.Close()); err != nil {
			t.Error(err)
		}
	})
	return k
}

// start starts a worker.
func (k *killRig) start() *worker {
	k.t.Helper()
	w := &worker{cmd: exec.Command("/proc/self/exe"), log: &bytes.Buffer{}, ready: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+k.store, "GORACE=atexit_sleep_ms=0")
	w.cmd.Stderr = w.log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	for _, fd := range []int{k.device.FD, k.memory.FD()} {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			k.t.Fatal(err)
		}
		f := os.NewFile(uintptr(dup), "")
		defer f.Close()
		w.cmd.ExtraFiles = append(w.cmd.ExtraFiles, f)
	}
	stdin, err := w.cmd.StdinPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	w.stdin = stdin
	if err := w.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	go func() {
		defer close(w.ready)
		_, _ = bufio.NewReader(stdout).ReadString('\n')
	}()
	return w
}

// kill kills a worker some time after its start, or after it serves, and reports
// whether it served by then. What it is in the midst of is up to chance.
func (k *killRig) kill(w *worker, after time.Duration, serves bool) (served bool) {
	k.t.Helper()
	if serves {
		<-w.ready
	}
	time.Sleep(after)
	select {
	case <-w.ready:
		served = true
	default:
	}
	if err := w.cmd.Process.Kill(); err != nil {
		k.t.Errorf("worker: %v\n%s", err, w.log)
	}
	<-w.ready
	err := w.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		k.t.Errorf("worker: %v\n%s", err, w.log)
	}
	return served
}

// stop ends a worker and waits for it.
func (w *worker) stop(t *testing.T) {
	t.Helper()
	if err := w.stdin.Close(); err != nil {
		t.Error(err)
	}
	<-w.ready
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("worker: %v\n%s", err, w.log)
	}
}

// TestKill: G10. Workers are killed while processes use the mount in many ways.
// None of them gets an error, and each line is there exactly as often as it was
// written, with an id of its own. Once the kernel sends again what was not
// answered, once that is found in the slots. SPOOLFS_CHAOS=1 kills 500 times each.
func TestKill(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("mounting needs root")
	}
	kills := 12
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		kills = 500
	}
	for _, resend := range []bool{true, false} {
		t.Run(fmt.Sprintf("resend=%t", resend), func(t *testing.T) { testKill(t, resend, kills) })
	}
}

func testKill(t *testing.T, resend bool, kills int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	k := newKillRig(t, resend)
	w := k.start()
	<-w.ready
	if err := k.device.Attach(); err != nil {
		t.Fatal(err)
	}
	reports, stopUsers := k.users(8, r)
	killed := 0
	for range kills {
		if k.kill(w, time.Duration(1+r.IntN(120))*time.Millisecond, r.IntN(3) > 0) {
			killed++
		}
		w = k.start()
	}
	stopUsers()
	all := userReport{Lines: map[string]int{}}
	for range 8 {
		report := <-reports
		for text, n := range report.Lines {
			all.Lines[text] = n
		}
		all.Files += report.Files
		if report.Longest > all.Longest {
			all.Longest, all.Call = report.Longest, report.Call
		}
	}
	<-w.ready
	w.stop(t)
	k.check(all)
	t.Logf("%d kills, %d of them of a worker that served; %d files; longest call %s (%s)", kills, killed, all.Files, all.Longest, all.Call)
}

// users starts processes that use the mount. They end after stop was called.
func (k *killRig) users(n int, r *rand.Rand) (reports chan userReport, stop func()) {
	reports = make(chan userReport, n)
	var inputs []io.Closer
	for i := range n {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s u%d %d", userEnv, k.dir, i, r.Uint64()), "GORACE=atexit_sleep_ms=0")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			k.t.Fatal(err)
		}
		inputs = append(inputs, stdin)
		go func() {
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			var report userReport
			err := cmd.Run()
			if err == nil {
				err = json.Unmarshal(out.Bytes(), &report)
			}
			if err != nil {
				k.t.Errorf("user: %v: %s", err, errs.String())
			}
			reports <- report
		}()
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			for _, in := range inputs {
				in.Close()
			}
		})
	}
	k.t.Cleanup(stop)
	return reports, stop
}

// check compares what is in the store with what was written.
func (k *killRig) check(all userReport) {
	k.t.Helper()
	q, stages, err := queue.Open(k.store, queue.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		k.t.Fatal(err)
	}
	defer q.Close()
	for _, s := range stages {
		k.t.Errorf("a stage is left: %+v", s.Info())
	}
	route, err := q.Route("default")
	if err != nil {
		k.t.Fatal(err)
	}
	ids := map[queue.ID]bool{}
	got := map[string]int{}
	for m, err := range route.Pending() {
		if err != nil {
			k.t.Fatal(err)
		}
		if ids[m.ID] {
			k.t.Errorf("two messages with the id %s", m.ID)
		}
		ids[m.ID] = true
		got[strings.TrimSuffix(string(m.Body), "\n")]++
	}
	stats, err := route.Stats()
	if err != nil || stats.Dead+stats.Partial > 0 {
		k.t.Errorf("set aside: %+v, %v", stats, err)
	}
	var wrong []string
	for text, n := range all.Lines {
		if got[text] != n {
			wrong = append(wrong, fmt.Sprintf("%d times and not %d: %s", got[text], n, text))
		}
		delete(got, text)
	}
	for text, n := range got {
		wrong = append(wrong, fmt.Sprintf("%d times and never written: %s", n, text))
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		k.t.Errorf("%d lines are wrong, such as\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
}
