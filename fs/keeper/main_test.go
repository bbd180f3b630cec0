package keeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"spoolfs/fs/device"
	"spoolfs/fs/shm"
)

// brokenEnv names a file: while it is there, workers fail at their start.
const brokenEnv = "SPOOLFS_TEST_BROKEN"

// TestMain makes the test binary a worker, which knows a few requests, or a
// client of a mount: a test must not wait itself for a mount that it serves.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "worker" {
		os.Exit(runWorker())
	}
	if len(os.Args) > 2 && os.Args[1] == "client" {
		for _, path := range os.Args[2:] {
			fmt.Println(int(errnoOf(unix.Access(path, unix.F_OK))))
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	errors.As(err, &errno)
	return errno
}

// served is the answer of a worker to each LOOKUP: no other file system has it.
const served = unix.ENOANO

// testWorker answers requests, after it has done what the name in them says.
type testWorker struct {
	device  *device.Device
	memory  *shm.Memory
	control *Control
	yield   atomic.Bool
}

func runWorker() int {
	how, err := os.ReadFile(os.Getenv(brokenEnv))
	if err == nil && string(how) == "" {
		return 3
	}
	control, err := NewControl(ControlFD)
	if err != nil {
		return 4
	}
	start, err := control.Receive()
	if err != nil || start.Start == nil {
		return 5
	}
	memory, err := shm.Open(MemoryFD)
	if err != nil {
		return 6
	}
	d, err := device.Adopt("/", DeviceFD, memory.Init(), memory.Resends())
	if err != nil {
		return 7
	}
	w := &testWorker{device: d, memory: memory, control: control}
	go w.sayAlive(start.Start.AliveEvery)
	switch string(how) {
	case "late":
		select {} // alive, but never ready
	case "unfit":
		control.Send(Message{Kind: KindEnded, Reason: Unfit, Cause: "a test says so"})
		return 3
	}
	for _, r := range memory.InHand() {
		memory.Drop(r.Slot)
	}
	if err := d.SendAgain(); err != nil {
		return 8
	}
	if err := control.Send(Message{Kind: KindReady}); err != nil {
		return 9
	}
	go w.obey()
	reason := w.serve()
	control.Send(Message{Kind: KindEnded, Reason: reason})
	return 0
}

func (w *testWorker) sayAlive(every time.Duration) {
	for range time.Tick(every) {
		w.control.Send(Message{Kind: KindAlive})
	}
}

func (w *testWorker) obey() {
	for {
		m, err := w.control.Receive()
		if err != nil {
			os.Exit(10)
		}
		if m.Kind == KindYield || m.Kind == KindDrain {
			w.yield.Store(true)
		}
	}
}

func (w *testWorker) serve() Reason {
	for i := 0; !w.yield.Load(); i++ {
		slot := w.memory.Slot(i % w.memory.Slots())
		slot.Reading()
		n, err := w.read(slot.Buffer())
		if errors.Is(err, unix.ENODEV) {
			return Unmounted
		}
		if n == 0 || err != nil {
			slot.End()
			continue
		}
		r := slot.Begin(n)
		name, _, _ := strings.Cut(string(slot.Buffer()[40:n]), "\x00")
		const opLookup = 1
		if r.Opcode != opLookup {
			name = ""
		}
		w.handle(slot, r, name)
	}
	return Yielded
}

// read reads a request, if there is one within a moment.
func (w *testWorker) read(b []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(w.device.FD), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, 5); n == 0 || err != nil {
		return 0, nil
	}
	n, err := unix.Read(w.device.FD, b)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	return n, err
}

func (w *testWorker) handle(slot *shm.Slot, r shm.Request, name string) {
	unique := binary.NativeEndian.Uint64(slot.Buffer()[8:])
	answer := func() {
		w.device.Refuse(unique, served)
		slot.End()
	}
	later := func(d time.Duration) {
		time.Sleep(d)
		answer()
	}
	switch {
	case name == "crash":
		if w.memory.Careful() {
			os.Exit(11)
		}
		go func() {
			time.Sleep(50 * time.Millisecond) // others come
			os.Exit(11)
		}()
	case name == "hang", name == "hang once" && !r.Resent:
	case name == "disk":
		slot.Wait()
		go later(2 * testTimeout)
	case name == "slow" && !w.memory.Careful():
		go later(100 * time.Millisecond)
	case name == "":
		slot.End()
		w.device.Refuse(unique, unix.EIO)
	default:
		answer()
	}
}
