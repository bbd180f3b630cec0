package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"spoolfs/fs"
	"spoolfs/fs/keeper"
	"spoolfs/fs/shm"
	"spoolfs/queue"
)

// stopLimit is how long the publisher may take to give up what it is doing.
const stopLimit = 15 * time.Second

// defaultRoute is the route of the mount's root.
const defaultRoute = "default"

// daemon is a mounted spool.
type daemon struct {
	flags *mountCommand // of the start; config has what is in force
	args  []string      // the command line, for a reload
	live  atomic.Pointer[mountCommand]
	level *slog.LevelVar

	// configError is what was wrong at the last reload.
	configError atomic.Pointer[string]

	log     *slog.Logger
	stdout  io.Writer
	started time.Time
	events  *events
	limit   *logLimit
	monitor *monitor
	metrics *metrics
	jobs    jobs

	// stop ends run, with a cause.
	stop    context.CancelCauseFunc
	worker  *worker         // nil without a keeper
	manager *keeper.Manager // nil with a keeper, too

	// background is what commands have begun.
	background sync.WaitGroup

	queue    *queue.Queue
	stages   []*queue.Stage // that the last run has left
	routes   routeSet
	route    *queue.Route // of the root
	main     *routeParts  // of the root
	fs       *fs.FS
	sweeping atomic.Pointer[sweep] // what empties the directory below the mount
}

// spareProcessors are how many more there are for Go than the machine has, since readers
// that wait in the kernel keep theirs until Go's monitor takes it away. Two, with readers
// that wait for the disk for all, gave 1.2 times the rate of eight writers on two CPUs.
const spareProcessors = 2

// addProcessors gives Go the spare ones, unless the user has set how many there are.
func addProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spareProcessors)
	}
}

// newDaemon opens the store and makes the parts. Nothing is mounted or sent yet.
func newDaemon(c *mountCommand, env *environment) (*daemon, error) {
	d := &daemon{
		flags: c, args: env.args, level: &slog.LevelVar{}, stdout: env.stdout, started: time.Now(),
		events: &events{}, limit: newLogLimit(), worker: env.worker, manager: env.manager,
	}
	d.live.Store(c)
	setLevel(d.level, c.LogLevel)
	d.log = newLogger(logOptions{d.level, c.LogFormat, isJournal(env.stderr, os.Getenv("JOURNAL_STREAM"))}, env.stderr, d.events, d.limit)
	if warning, err := c.checkStorePlace(); err != nil {
		return nil, c.origins.placed(err)
	} else if warning != "" {
		d.log.Warn(warning, "store", c.Store)
	}
	d.observe()
	if d.worker != nil {
		d.worker.watch(d.monitor.progress)
	}
	if err := d.openQueue(env.ctx); err != nil {
		return nil, err
	}
	if err := d.makeParts(); err != nil {
		return nil, errors.Join(withCode(exitConfig, err), d.close())
	}
	if err := d.fs.Recover(d.stages); err != nil {
		return nil, errors.Join(withCode(exitIO, err), d.close())
	}
	if len(d.stages) > 0 {
		d.log.Info("took up files of the last run", "files", len(d.stages))
	}
	return d, nil
}

// openQueue opens the store.
func (d *daemon) openQueue(ctx context.Context) error {
	q, stages, err := d.awaitStore(ctx)
	switch {
	case errors.Is(err, queue.ErrLocked):
		return withCode(exitTemporary, err)
	case errors.Is(err, queue.ErrNewerStore):
		return withCode(exitConfig, err)
	case err != nil:
		return withCode(exitIO, err)
	}
	d.queue, d.stages = q, stages
	if d.route, err = q.Route(defaultRoute); err != nil {
		return errors.Join(withCode(exitIO, err), d.close())
	}
	return nil
}

// storeWait is how long a start waits for a store whose last owner is dying.
const storeWait = 5 * time.Second

func (d *daemon) awaitStore(ctx context.Context) (*queue.Queue, []*queue.Stage, error) {
	opts := queue.Options{Logger: d.log, Limits: d.flags.limits(), LockTimeout: -1}
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for waiting := false; ; waiting = true {
		q, stages, err := queue.Open(d.flags.Store, opts)
		if !errors.Is(err, queue.ErrLocked) {
			return q, stages, err
		}
		if !waiting {
			d.log.Warn("the store is in use, waiting for its owner to end", "store", d.flags.Store, "at_most", storeWait)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, nil, inUse(d.flags.Store, err)
		}
	}
}

// inUse adds to an error which process has the store.
func inUse(store string, err error) error {
	if info, e := queue.Look(store); e == nil && info.Owner != 0 {
		return fmt.Errorf("%w (process %d has it)", err, info.Owner)
	}
	return err
}

func (d *daemon) makeParts() (err error) {
	if err = d.setRoutes(d.flags); err != nil {
		return err
	}
	d.main = d.routes.list()[0]
	d.warnOfRemoved()
	opts := d.fsOptions(d.flags)
	opts.Memory, opts.Route, opts.Format, opts.Logger = d.memory(), d.route, d.main.format, d.log
	if opts.Store, err = storeID(d.flags.Store); err != nil {
		d.log.Warn("whether the mount belongs to this store is not checked", "error", err)
		err = nil
	}
	opts.Host, opts.UserName, opts.Provenance = hostName(), d.main.format.userName, d.flags.Provenance
	opts.Routes = d.fsRoutes()
	opts.Status, opts.Commands = d.statusFiles(), d.commands()
	d.fs, err = fs.New(opts)
	return err
}

// run serves until ctx ends, somebody unmounts, or the store fails.
func (d *daemon) run(ctx context.Context) error {
	ctx, d.stop = context.WithCancelCause(ctx)
	defer d.stop(nil)
	publishing, stopPublishing := context.WithCancel(context.Background())
	defer stopPublishing()
	published := make(chan error, 1)
	unwatch, err := d.watch()
	if err != nil {
		return err
	}
	defer unwatch()
	d.hasten() // the configuration may allow now what it did not
	go func() { published <- d.routes.run(publishing) }()
	sweep, err := d.newSweep()
	if err != nil {
		stopPublishing()
		return errors.Join(err, <-published)
	}
	defer sweep.close()
	if d.worker == nil || !d.worker.mounted {
		sweep.first()
	}
	defer d.reloadOnHangup()()
	mount, err := d.serve()
	if err != nil {
		stopPublishing()
		return errors.Join(withCode(exitCannot, err), <-published)
	}
	d.monitor.enter(phaseServing)
	sweep.goOn()
	d.ready()
	select {
	case <-ctx.Done():
		d.log.Info("stopping", "cause", context.Cause(ctx))
	case <-mount.Done():
		d.ends(keeper.Unmounted)
		d.log.Warn("somebody else has unmounted the spool: stopping")
	case err := <-published:
		// The mount stays, dead, so that writers fail instead of filling the
		// directory below it. The next start replaces it.
		return withCode(exitIO, fmt.Errorf("cannot go on, restart when the cause is mended; all that was closed is safe: %w", err))
	}
	d.monitor.enter(phaseStopping)
	sweep.close()
	d.notify("STOPPING=1")
	if context.Cause(ctx) != errYields {
		d.drain()
	}
	stopPublishing()
	select {
	case err = <-published:
	case <-time.After(stopLimit):
		d.routes.abort()
		err = errors.Join(<-published, withCode(exitTemporary, errors.New("the broker holds up the stop: ended without it; what was not confirmed is in the store")))
	}
	if left, e := d.queue.Stats(); e == nil {
		d.log.Info("stopped", "queued", left.Ready+left.Delayed, "dead", left.Dead)
	}
	return errors.Join(err, mount.Unmount())
}

// serve has the mount served: that of the keeper, or one of our own.
func (d *daemon) serve() (served, error) {
	if d.worker != nil {
		return d.worker.serve(d.fs, d.config())
	}
	return d.fs.Mount(d.flags.Mountpoint)
}

// memory is what outlives this process; nil if nothing has to.
func (d *daemon) memory() *shm.Memory {
	if d.worker == nil {
		return nil
	}
	return d.worker.memory
}

// unmount ends the mount, and the daemon with it.
func (d *daemon) unmount() error {
	if d.worker != nil {
		return d.worker.control.Send(keeper.Message{Kind: keeper.KindUnmount})
	}
	d.stop(errors.New("asked to unmount"))
	return nil
}

// ends says why a worker ends.
func (d *daemon) ends(reason keeper.Reason) {
	if d.worker != nil {
		d.worker.reason = reason
	}
}

// notify tells the service manager. With a keeper it does that.
func (d *daemon) notify(lines ...string) {
	if err := d.manager.Notify(lines...); err != nil {
		d.log.Warn("service manager", "error", err)
	}
}

func (d *daemon) ready() {
	if d.worker == nil && inBackground() {
		_, _ = syscall.Setsid() // it fails for who has one
	}
	d.warnOfBatchJob()
	d.notify("READY=1")
	stats, err := d.queue.Stats()
	if err != nil {
		d.log.Error("stats", "error", err)
	}
	if damage := d.queue.Damage(); damage.Damaged > 0 {
		d.log.Warn("the store has been damaged: what could be read is served", "damaged", damage.Damaged,
			"missing", damage.Missing, "set_aside", damage.Dir, "at", damage.At)
	}
	d.log.Info("ready", "mountpoint", d.flags.Mountpoint, "store", d.flags.Store,
		"broker", d.flags.masked(), "exchange", d.flags.Exchange,
		"queued", stats.Ready+stats.Delayed, "dead", stats.Dead, "version", version())
}

// drain takes no new files, lets open ones finish, and sends what the broker
// takes, each within its limit.
func (d *daemon) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), d.config().StopFiles)
	defer cancel()
	if err := d.fs.Drain(ctx); err != nil {
		d.log.Warn("files stay open; what was flushed of them is safe", "error", err)
	}
	deadline := time.Now().Add(d.config().StopSend)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for ; time.Now().Before(deadline); <-ticker.C {
		if d.routes.areDone(d.flags.StopEmpty) {
			return
		}
	}
}

// close closes the store.
func (d *daemon) close() error {
	err := d.queue.Close()
	d.background.Wait()
	if err != nil {
		return withCode(exitIO, err)
	}
	return nil
}
