package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"spoolfs/fs"
	"spoolfs/fs/keeper"
	"spoolfs/fs/shm"
)

// workerCommand is "spoolfs worker", which a keeper starts.
type workerCommand struct {
	Check      bool   `env:"-" help:"Only tell whether this program could take over."`
	Mountpoint string `arg:"" env:"-" help:"For people to read."`
}

// Run is called by kong.
func (c *workerCommand) Run(env *environment) error {
	if c.Check {
		return checkWorker()
	}
	w, err := newWorker()
	if err != nil {
		return withCode(exitUsage, fmt.Errorf("this command is for the keeper of a mount, see \"spoolfs mount\": %w", err))
	}
	err = w.run(env)
	w.tellUnfit(err)
	return err
}

// run serves until the keeper says otherwise.
func (w *worker) run(env *environment) error {
	flags, err := w.loadMount()
	if err != nil {
		return err
	}
	env.ctx, env.args, env.worker = w.ctx, w.args, w
	addProcessors()
	d, err := newDaemon(flags, env)
	if err != nil {
		return err
	}
	if err := errors.Join(d.run(w.ctx), d.close()); err != nil {
		return err
	}
	return w.control.Send(keeper.Message{Kind: keeper.KindEnded, Reason: w.why()})
}

// checkWorker tells a keeper of another version whether this one could take
// over: with the arguments on standard input and the memory as descriptor 3.
func checkWorker() error {
	var args []string
	if err := json.NewDecoder(os.Stdin).Decode(&args); err != nil {
		return withCode(exitUsage, err)
	}
	memory, err := shm.Open(3)
	if err != nil {
		return withCode(exitConfig, fmt.Errorf("unmount the spool and mount it again: %w", err))
	}
	flags, err := loadMount(args)
	if err == nil {
		err = checkStoreOf(memory, flags.Store)
	}
	return errors.Join(err, memory.Close())
}

// checkStoreOf sees that a mount belongs to a store: the configuration may name
// another one than when it was made.
func checkStoreOf(memory *shm.Memory, store string) error {
	id, err := knownStoreID(store)
	if err == nil && !memory.IsOfStore(id) {
		err = fmt.Errorf("%w than %s: put the former one back into the configuration, or restart when nothing is open", shm.ErrOtherStore, store)
	}
	return withCodeIf(exitConfig, err)
}

// Why a worker's context ends.
var (
	errDrain  = errors.New("the keeper stops")
	errYields = errors.New("another process takes over")
)

// worker is what a process that serves has of its keeper.
type worker struct {
	control *keeper.Control
	memory  *shm.Memory
	args    []string        // of "spoolfs mount"
	inForce json.RawMessage // the configuration of the worker before; nil for the first
	mounted bool            // the mount was visible already when we were started
	ctx     context.Context
	stop    context.CancelCauseFunc

	attached chan struct{} // closed when the mount is visible
	reason   keeper.Reason // why it ends, if not because the keeper said so

	mu       sync.Mutex // guards what follows
	state    keeper.State
	progress func() error // tells what does not get on; nil before somebody watches
	status   string       // for the service manager
}

// newWorker learns from the keeper how to start.
func newWorker() (*worker, error) {
	control, err := keeper.NewControl(keeper.ControlFD)
	if err != nil {
		return nil, err
	}
	m, err := control.Receive()
	if err != nil {
		return nil, err
	}
	if m.Kind != keeper.KindStart || m.Start == nil {
		return nil, fmt.Errorf("the keeper said %q first", m.Kind)
	}
	memory, err := shm.Open(keeper.MemoryFD)
	if err != nil {
		(&worker{control: control}).tellUnfit(err)
		return nil, err
	}
	syscall.CloseOnExec(keeper.DeviceFD)
	w := &worker{control: control, memory: memory, args: m.Start.Args, inForce: m.Start.Config, mounted: m.Start.Mounted, attached: make(chan struct{}), state: m.Start.State}
	w.ctx, w.stop = context.WithCancelCause(context.Background())
	go w.obey()
	go w.sayAlive(m.Start.AliveEvery)
	return w, nil
}

// tellUnfit tells the keeper when no other worker could go on either.
func (w *worker) tellUnfit(err error) {
	for _, unfit := range []error{shm.ErrDamaged, shm.ErrLayout, shm.ErrOtherStore} {
		if errors.Is(err, unfit) {
			// If it cannot be told, the keeper tries for some time.
			_ = w.control.Send(keeper.Message{Kind: keeper.KindEnded, Reason: keeper.Unfit, Cause: err.Error()})
			return
		}
	}
}

// loadMount reads the configuration: for the first worker of a mount the files,
// for the others what was in force. A SIGHUP has the files read again.
func (w *worker) loadMount() (*mountCommand, error) {
	if w.inForce != nil {
		return decodeMount(w.inForce)
	}
	return loadMount(w.args)
}

// obey does what the keeper says, to the end of the process.
func (w *worker) obey() {
	for {
		m, err := w.control.Receive()
		if err != nil {
			// The kernel kills us when the keeper dies; this is for the moment
			// before.
			os.Exit(exitTemporary)
		}
		switch m.Kind {
		case keeper.KindAttached:
			// The first one of a mount in the background has no process group of
			// its own yet. Who has one is refused.
			_, _ = syscall.Setsid()
			close(w.attached)
		case keeper.KindDrain:
			w.stop(errDrain)
		case keeper.KindYield:
			w.stop(errYields)
		case keeper.KindKeeper:
			if m.State != nil {
				w.mu.Lock()
				w.state = *m.State
				w.mu.Unlock()
			}
		}
	}
}

func (w *worker) sayAlive(every time.Duration) {
	ticker := time.NewTicker(max(every, time.Millisecond))
	defer ticker.Stop()
	for range ticker.C {
		if err := w.control.Send(keeper.Message{Kind: keeper.KindAlive, Stuck: w.stuck(), Status: w.statusLine()}); err != nil {
			return // the keeper ends, and we with it
		}
	}
}

// why tells in which good order it ends.
func (w *worker) why() keeper.Reason {
	switch {
	case w.reason != "":
		return w.reason
	case errors.Is(context.Cause(w.ctx), errYields):
		return keeper.Yielded
	}
	return keeper.Drained
}

func (w *worker) stuck() string {
	w.mu.Lock()
	progress := w.progress
	w.mu.Unlock()
	if progress == nil {
		return ""
	}
	if err := progress(); err != nil {
		return strings.ReplaceAll(err.Error(), "\n", ", ")
	}
	return ""
}

// setStatus is what the service manager will be told.
func (w *worker) setStatus(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = line
}

func (w *worker) statusLine() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// watch has the keeper know what does not get on.
func (w *worker) watch(progress func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress = progress
}

// serve begins to serve the keeper's mount, and waits until it is visible.
func (w *worker) serve(files *fs.FS, flags *mountCommand) (served, error) {
	config, err := flags.encode()
	if err != nil {
		return nil, err
	}
	m, err := files.Serve(keeper.DeviceFD)
	if err != nil {
		return nil, err
	}
	err = w.control.Send(keeper.Message{Kind: keeper.KindReady, Version: version(), Config: config})
	if err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	select {
	case <-w.attached:
	case <-w.ctx.Done():
	case <-m.Done():
	}
	return lent{m}, nil
}

// keeperState is what the keeper has told of itself.
func (w *worker) keeperState() keeper.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// served is a mount that is being served.
type served interface {
	// Done is closed when it is not served any more.
	Done() <-chan struct{}

	// Unmount ends it.
	Unmount() error
}

var _ served = (*fs.Mount)(nil)

// lent is the mount of a keeper.
type lent struct{ *fs.Mount }

// Unmount only stops to serve: the keeper unmounts.
func (l lent) Unmount() error { return l.Stop() }
