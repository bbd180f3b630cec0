package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/fs/device"
	"spoolfs/fs/shm"
)

// Why Run has ended, apart from nil: drained and unmounted, or unmounted by
// somebody else.
var (
	// ErrHandedOver says that the mount lives on, with the service manager.
	ErrHandedOver = errors.New("the mount is left with the service manager")

	// ErrUpgrade says that the program on disk has been proven, and is to be
	// executed in place of this one. If that fails Run can be called again.
	ErrUpgrade = errors.New("the new program is to take over")

	// ErrNoWorker says that no worker could serve. The mount is dead.
	ErrNoWorker = errors.New("no worker can serve")
)

// ExitError is the end of a worker in no good order: the first, before it was
// ready, or one that drained.
type ExitError struct {
	Code int // of the exit; -1 after a signal
	What string
}

func (e *ExitError) Error() string { return e.What }

// goal is what the keeper is about.
type goal int

const (
	serve    goal = iota // a worker that dies is replaced
	drain                // it ends in good order, and the mount with it
	handOver             // it yields, and the mount stays
	replace              // it yields to a trial of the new program
	trial                // the new program is tried
	succeed              // it has served, and yields to a new keeper
)

// Keeper keeps a mount.
type Keeper struct {
	opts   Options
	device *device.Device
	memory *shm.Memory
	judge  *judge
	state  State

	reload  chan struct{}
	upgrade chan struct{}

	// These belong to Run.
	goal       goal
	worker     *worker // nil between two
	respawn    <-chan time.Time
	deadline   <-chan time.Time // by which a worker must have ended
	verified   chan error
	reloading  <-chan time.Time // when the worker must have reloaded
	reloadNext bool             // there was no worker to reload
	attached   bool
	healthy    bool             // a worker serves
	since      time.Time        // when healthy has changed
	limit      <-chan time.Time // by which a worker must serve
	cause      string           // of the last death that was not reported yet
	row        int              // deaths of workers' own making in a row
	forGood    bool             // the end is that of the mount, whoever could keep it
	own        bool             // workers are started from the running program, not from disk
	stuck      string
	status     string // that the service manager was told
}

// New mounts, and keeps nothing yet. The mount is not visible before a worker is
// ready.
func New(opts Options) (*Keeper, error) {
	opts.ensureDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	d, err := device.OpenNamed(opts.Dir, opts.Source)
	if err != nil {
		return nil, err
	}
	m, err := newMemory(d, d.Resend && !opts.NoResend)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return newKeeper(opts, d, m), nil
}

func newMemory(d *device.Device, resend bool) (*shm.Memory, error) {
	m, err := shm.Create(shm.Options{})
	if err != nil {
		return nil, err
	}
	if err := m.SetInit(d.Init); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	m.SetResends(resend)
	m.NextEpoch()
	return m, nil
}

// Adopt takes over the mount of a former keeper by its descriptors, which belong
// to the keeper from then on, also after an error.
func Adopt(opts Options, deviceFD, memoryFD int) (*Keeper, error) {
	opts.ensureDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	unix.CloseOnExec(deviceFD)
	if isClosed(deviceFD) {
		return nil, errors.Join(errors.New("take over the mount: it has been unmounted"), unix.Close(deviceFD), unix.Close(memoryFD))
	}
	m, err := shm.Open(memoryFD)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take over the mount: %w", err), unix.Close(deviceFD))
	}
	d, err := device.Adopt(opts.Dir, deviceFD, m.Init(), m.Resends())
	if err != nil {
		return nil, errors.Join(err, m.Close(), unix.Close(deviceFD))
	}
	k := newKeeper(opts, d, m)
	k.attached = true
	return k, nil
}

// isClosed reports whether the kernel has given up a connection.
func isClosed(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLERR != 0
}

func newKeeper(opts Options, d *device.Device, m *shm.Memory) *Keeper {
	k := &Keeper{
		opts: opts, device: d, memory: m, judge: newJudge(), since: time.Now(),
		reload: make(chan struct{}, 1), upgrade: make(chan struct{}, 1), verified: make(chan error, 1),
	}
	k.state = opts.Start.State
	k.state.PID, k.state.Binary = os.Getpid(), opts.Binary
	if k.state.Started.IsZero() {
		k.state.Started = time.Now()
	}
	return k
}

// Reload has the worker read its configuration again.
func (k *Keeper) Reload() { nudge(k.reload) }

// Upgrade has worker and keeper replaced by the program on disk.
func (k *Keeper) Upgrade() { nudge(k.upgrade) }

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Descriptors are the device and the memory, for who takes over.
func (k *Keeper) Descriptors() (deviceFD, memoryFD int) { return k.device.FD, k.memory.FD() }

// State is what a new keeper should go on with. It may be called when Run has
// returned.
func (k *Keeper) State() State { return k.state }

// Close gives up device and memory. Unless somebody else has them, the mount is
// dead.
func (k *Keeper) Close() error {
	return errors.Join(k.device.Close(), k.memory.Close())
}

// Run keeps the mount until ctx ends, which means drain and unmount, or hand over
// to a service manager that keeps descriptors; until somebody else unmounts; or
// until an error of those above. No worker is left when it returns.
func (k *Keeper) Run(ctx context.Context) error {
	// A worker is killed when the thread that has forked it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := k.leave(); err != nil {
		k.opts.Logger.Warn("a restart of the service will be an interruption", "error", err)
	}
	k.goal, k.deadline = serve, nil
	if k.attached {
		k.limit = time.After(k.opts.WorkerTimeout)
	}
	k.start()
	ticker := time.NewTicker(k.opts.RequestTimeout / sightings)
	defer ticker.Stop()
	stop := ctx.Done()
	for {
		var done bool
		var err error
		select {
		case <-stop:
			stop = nil
			done, err = k.stop(context.Cause(ctx))
		case <-k.reloading:
			k.reloaded()
		case <-k.reload:
			k.forwardReload()
		case <-k.upgrade:
			k.verify()
		case err := <-k.verified:
			k.beginUpgrade(err)
		case m, ok := <-k.messages():
			done, err = k.hear(m, ok)
		case state := <-k.exited():
			done, err = k.bury(state)
		case <-k.respawn:
			k.start()
		case <-k.deadline:
			k.deadline = nil
			k.overdue()
		case <-k.limit:
			done, err = true, k.giveUp()
		case <-ticker.C:
			k.look()
		}
		if done {
			k.clear()
			return err
		}
	}
}

// messages and exited are those of the worker there is.
func (k *Keeper) messages() <-chan Message {
	if k.worker == nil || k.worker.deaf {
		return nil
	}
	return k.worker.messages
}

func (k *Keeper) exited() <-chan *os.ProcessState {
	if k.worker == nil {
		return nil
	}
	return k.worker.exited
}

// clear ends a worker that is left.
func (k *Keeper) clear() {
	k.respawn = nil
	if w := k.worker; w != nil {
		w.kill()
		<-w.exited
		w.drainMessages()
		k.worker = nil
	}
}

// leave leaves the descriptors with the service manager.
func (k *Keeper) leave() error {
	return errors.Join(
		k.opts.Manager.store(DeviceName, k.device.FD),
		k.opts.Manager.store(MemoryName, k.memory.FD()),
	)
}
