package keeper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/fs/keeper/keepertest"
)

// program makes a program of workers that is a script before the real one.
func (r *rig) program(script string) {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	path := filepath.Join(r.t.TempDir(), "program")
	if r.opts.Binary != "/proc/self/exe" {
		path = r.opts.Binary + ".new"
	}
	text := fmt.Sprintf("#!/bin/sh\n%s\nexec '%s' \"$@\"\n", script, self)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if r.opts.Binary == "/proc/self/exe" {
		r.opts.Binary = path
		return
	}
	if err := os.Rename(path, r.opts.Binary); err != nil {
		r.t.Fatal(err)
	}
}

// load looks for names all the time, until told to end.
func (r *rig) load() (finish func()) {
	var wait sync.WaitGroup
	quit := make(chan struct{})
	for range 2 {
		wait.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-quit:
					return
				default:
				}
				for _, errno := range r.begin("slow", "a", "b", "slow", "c")() {
					if errno != served {
						r.t.Errorf("under load: %v", errno)
					}
				}
			}
		})
	}
	return func() {
		close(quit)
		wait.Wait()
	}
}

// adopt goes on with a new keeper.
func (r *rig) adopt(deviceFD, memoryFD int) {
	r.t.Helper()
	k, err := Adopt(r.opts, deviceFD, memoryFD)
	if err != nil {
		r.t.Fatal(err)
	}
	r.run(k)
}

// copies are descriptors as a new program gets them.
func (r *rig) copies() (deviceFD, memoryFD int) {
	r.t.Helper()
	deviceFD, memoryFD = r.keeper.Descriptors()
	for _, fd := range []*int{&deviceFD, &memoryFD} {
		n, err := unix.FcntlInt(uintptr(*fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			r.t.Fatal(err)
		}
		*fd = n
	}
	return deviceFD, memoryFD
}

// TestKeeper_Upgrade: the new program is tried, and a new keeper goes on where the
// old one has ended. Nobody gets an error.
func TestKeeper_Upgrade(t *testing.T) {
	r := newRig(t)
	r.program("")
	r.mount()
	finish := r.load()
	for i := range 3 {
		r.program(fmt.Sprintf("echo %d >> '%s.tried'", i, r.opts.Binary))
		r.keeper.Upgrade()
		if err := r.ended(); !errors.Is(err, ErrUpgrade) {
			t.Fatalf("Run: %v", err)
		}
		tried, err := os.ReadFile(r.opts.Binary + ".tried")
		if err != nil || !strings.Contains(string(tried), fmt.Sprint(i)) {
			t.Errorf("program %d was not tried: %q, %v", i, tried, err)
		}
		fd, memory := r.copies()
		if err := r.keeper.Close(); err != nil {
			t.Error(err)
		}
		r.adopt(fd, memory)
		if errno := r.ask("x"); errno != served {
			t.Errorf("after the upgrade: %v", errno)
		}
	}
	finish()
}

// TestKeeper_TakesBackUpgrade proves K5: whether the new program is refused, dies,
// or cannot be executed at last, the old one goes on.
func TestKeeper_TakesBackUpgrade(t *testing.T) {
	r := newRig(t)
	var verdict error
	r.opts.Verify = func(int) error { return verdict }
	r.program("")
	r.mount()
	finish := r.load()

	verdict = errors.New("a test refuses it")
	r.keeper.Upgrade()
	r.untilLogged("a test refuses it")

	verdict = nil
	r.programThatIs("unfit")
	r.keeper.Upgrade()
	r.untilLogged("a test says so")
	if errno := r.ask("x"); errno != served {
		t.Errorf("after a new program that is unfit: %v", errno)
	}

	r.program("exit 7")
	r.keeper.Upgrade()
	r.untilLogged("exit code 7")
	if errno := r.ask("x"); errno != served {
		t.Errorf("after the new program has died: %v", errno)
	}

	r.program("")
	r.keeper.Upgrade()
	if err := r.ended(); !errors.Is(err, ErrUpgrade) {
		t.Fatalf("Run: %v", err)
	}
	r.keeper.UpgradeFailed(errors.New("a test does not execute it"))
	r.run(r.keeper)
	finish()
	r.stop()
	if err := r.ended(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := r.keeper.State().UpgradeFails; got != 4 {
		t.Errorf("%d failed upgrades are counted, want 4", got)
	}
}

// programThatIs makes a program whose workers are late or unfit.
func (r *rig) programThatIs(what string) {
	r.t.Helper()
	path := r.broken + "." + what
	if err := os.WriteFile(path, []byte(what), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.program(fmt.Sprintf("export %s='%s'", brokenEnv, path))
}

// TestKeeper_TakesBackLateUpgrade proves K5 for a program that is alive and never
// ready.
func TestKeeper_TakesBackLateUpgrade(t *testing.T) {
	r := newRig(t)
	r.opts.WorkerTimeout = 24 * time.Second
	r.program("")
	r.mount()
	answers := r.begin("slow", "x")
	r.programThatIs("late")
	r.keeper.Upgrade()
	r.untilLogged("does not serve in time")
	for i, errno := range append(answers(), r.ask("y")) {
		if errno != served {
			t.Errorf("answer %d is %v", i, errno)
		}
	}
	r.untilLogged("the upgrade has failed")
}

// give hands out copies of what is stored.
func give(m *keepertest.Manager) (deviceFD, memoryFD int) {
	names, fds := m.Copies()
	for i, name := range names {
		switch name {
		case DeviceName:
			deviceFD = fds[i]
		case MemoryName:
			memoryFD = fds[i]
		}
	}
	return deviceFD, memoryFD
}

// TestKeeper_HandsOver: with a service manager that keeps descriptors, a stop of
// the keeper is no end of the mount, nor is its death. Who unmounts ends it, and
// nothing stays with the manager.
func TestKeeper_HandsOver(t *testing.T) {
	r := newRig(t)
	m := keepertest.NewManager(t)
	r.opts.Manager = &Manager{Socket: m.Socket(), Stores: true}
	r.mount()
	finish := r.load()
	for range 3 {
		r.stop()
		if err := r.ended(); !errors.Is(err, ErrHandedOver) {
			t.Fatalf("Run: %v", err)
		}
		if err := r.keeper.Close(); err != nil {
			t.Error(err)
		}
		r.adopt(give(m))
	}
	finish()
	r.until("told", func() bool { return m.Has("READY=1") && m.Has("STOPPING=1") && m.Has("WATCHDOG=1") })
	if err := unix.Unmount(r.dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if err := r.ended(); err != nil {
		t.Errorf("Run: %v", err)
	}
	r.until("forgotten", func() bool { return m.Stored() == 0 })
	if _, err := Adopt(r.opts, mustDup(t, r), mustNull(t)); err == nil {
		t.Error("an unmounted connection is adopted")
	}
}

func mustDup(t *testing.T, r *rig) int {
	t.Helper()
	fd, _ := r.copies()
	return fd
}

func mustNull(t *testing.T) int {
	t.Helper()
	fd, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
