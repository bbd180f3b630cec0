package keeper

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"

	"spoolfs/fs/shm"
)

// ownBinary is the running program, even if it has been replaced on disk.
const ownBinary = "/proc/self/exe"

// start starts a worker. If the program on disk fails, as in the middle of an
// installation, the running one is taken the next time.
func (k *Keeper) start() {
	k.respawn = nil
	binary := k.opts.Binary
	if k.own {
		binary = ownBinary
	}
	k.state.Workers++
	since := time.Duration(k.memory.Now())
	w, err := startWorker(binary, k.opts.Dir, k.device.FD, k.memory.FD(), k.workerAttr())
	if err != nil {
		k.opts.Logger.Error("start a worker", "error", err)
		k.failed(err)
		return
	}
	k.worker, w.since = w, since
	k.opts.Logger.Debug("a worker has been started", "pid", w.process.Pid, "binary", binary)
	restoreOOM(w.process.Pid, k.opts.OOMScore)
	start := k.opts.Start
	start.State, start.Mounted, start.AliveEvery = k.state, k.attached, min(k.opts.RequestTimeout/(2*sightings), time.Second)
	if err := w.tell(Message{Kind: KindStart, Start: &start}); err != nil {
		k.opts.Logger.Error("start a worker", "error", err)
		w.kill()
	}
}

// workerAttr is how a worker is started: as its user, to be killed with us, and with
// a process group of its own, if not Detach has it wait for that.
func (k *Keeper) workerAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setpgid: k.attached || !k.opts.Detach, Pdeathsig: syscall.SIGKILL, Credential: k.opts.Credential,
	}
}

// failed plans the next start after one that did not succeed.
func (k *Keeper) failed(err error) {
	k.row++
	switch {
	case k.goal == trial:
		k.takeBack(err)
		return
	case !k.attached:
		k.cause, k.limit = err.Error(), time.After(0)
		return
	}
	k.own = !k.own
	k.respawn = time.After(pause(k.row))
}

// hear does what a message of the worker asks for.
func (k *Keeper) hear(m Message, ok bool) (done bool, err error) {
	if !ok {
		k.worker.deaf = true // it is about to exit
		return false, nil
	}
	k.worker.quiet = 0
	switch m.Kind {
	case KindReady:
		k.keepConfig(m)
		return k.workerReady()
	case KindAlive:
		k.alive(m.Stuck)
		k.tellStatus(m.Status)
	case KindReloaded:
		k.keepConfig(m)
		k.reloaded()
	case KindUnmount:
		if k.goal == serve {
			k.forGood = true
			return k.stop(errors.New("asked to unmount"))
		}
	case KindEnded:
		k.worker.hasEnded(m)
	}
	return false, nil
}

// keepConfig keeps the configuration for the next worker.
func (k *Keeper) keepConfig(m Message) {
	if m.Config != nil {
		k.opts.Start.Config = m.Config
	}
}

// workerReady makes the mount visible, if it is not yet, and says so.
func (k *Keeper) workerReady() (done bool, err error) {
	if !k.attached {
		if err := k.device.Attach(); err != nil {
			return true, err
		}
		k.attached = true
		if k.opts.Detach {
			detach(k.opts.Logger)
		}
	}
	w := k.worker
	w.ready = time.Now()
	k.setHealthy(true)
	if err := w.tell(Message{Kind: KindAttached}); err != nil {
		k.opts.Logger.Error("tell the worker that the mount is there", "error", err)
	}
	k.notify("READY=1", "STATUS=serving", fmt.Sprintf("MAINPID=%d", os.Getpid()))
	if k.reloadNext {
		k.forwardReload()
	}
	switch k.goal {
	case drain:
		if k.deadline == nil { // it passed while there was no worker
			k.deadline = time.After(k.opts.StopTimeout)
		}
		k.order(KindDrain)
	case trial:
		k.goal = succeed
		k.yield()
	}
	return false, nil
}

// detach leaves the process group, and the terminal if there is one.
func detach(log *slog.Logger) {
	if _, err := syscall.Setsid(); err != nil {
		log.Warn("stay in the process group of who has mounted", "error", err)
	}
}

// setHealthy reports a gap that has ended.
func (k *Keeper) setHealthy(on bool) {
	if k.healthy == on {
		return
	}
	now := time.Now()
	if on && k.cause != "" {
		gap := now.Sub(k.since).Milliseconds()
		k.state.LastGapMS, k.state.WorstGapMS = gap, max(gap, k.state.WorstGapMS)
		k.opts.Logger.Warn("a worker has died and was replaced", "cause", k.cause, "gap_ms", gap,
			"pid", k.worker.process.Pid, "deaths", k.state.Deaths)
		k.cause = ""
		k.tellState()
	}
	k.healthy, k.since, k.limit = on, now, nil
	if !on && k.attached {
		k.limit = time.After(k.opts.WorkerTimeout)
	}
}

func (k *Keeper) tellState() {
	if k.worker == nil {
		return
	}
	state := k.state
	if err := k.worker.tell(Message{Kind: KindKeeper, State: &state}); err != nil {
		k.opts.Logger.Debug("tell the worker about the keeper", "error", err)
	}
}

// alive feeds the watchdog of the service manager, as long as mount and store go
// on.
func (k *Keeper) alive(stuck string) {
	if stuck != k.stuck && stuck != "" {
		k.opts.Logger.Error("the worker does not get on", "what", stuck)
	}
	k.stuck = stuck
	if stuck == "" && k.healthy {
		k.notify("WATCHDOG=1")
	}
}

// tellStatus passes the state on for "systemctl status", where it has changed.
func (k *Keeper) tellStatus(text string) {
	if text != "" && text != k.status && k.healthy {
		k.status = text
		k.notify("STATUS=" + text)
	}
}

// bury goes on after the end of a worker.
func (k *Keeper) bury(state *os.ProcessState) (done bool, err error) {
	w := k.worker
	w.drainMessages()
	k.worker = nil
	k.setHealthy(false)
	if k.goal != drain {
		k.deadline = nil
	}
	e := w.end(state)
	if w.cause != "" {
		e.cause += ": " + w.cause
	}
	switch {
	case e.code == 0 && w.reason == Unmounted:
		k.opts.Logger.Warn("somebody else has unmounted the spool: stopping")
		return true, k.opts.Manager.Forget()
	case k.goal == handOver:
		return true, ErrHandedOver
	case k.goal == succeed:
		return true, ErrUpgrade
	case k.goal == drain && (w.reason == Drained || !e.foreign):
		return true, k.unmount(e)
	case !k.attached && !e.foreign:
		return true, &ExitError{e.code, "the worker ended before it served: " + e.cause}
	case k.goal == replace:
		k.try()
		return false, nil
	case w.reason == Unfit && k.goal == serve && isOwn(w.binary):
		// Time mends neither the memory nor the configuration.
		k.state.Deaths++
		k.cause = e.cause
		return true, k.giveUp()
	}
	k.died(w, e)
	return false, nil
}

// isOwn reports whether a program is the running one, which is the last that can
// know a memory that it has made itself.
func isOwn(binary string) bool {
	if binary == ownBinary {
		return true
	}
	own, err := os.Stat(ownBinary)
	if err != nil {
		return true
	}
	its, err := os.Stat(binary)
	return err == nil && os.SameFile(own, its)
}

// unmount ends the mount after the worker.
func (k *Keeper) unmount(e end) error {
	err := errors.Join(k.opts.Manager.Forget(), k.device.Detach())
	if e.code != 0 {
		return errors.Join(&ExitError{e.code, "the worker did not end in good order: " + e.cause}, err)
	}
	return err
}

// died goes on after a death that nobody has asked for.
func (k *Keeper) died(w *worker, e end) {
	k.state.Deaths++
	k.state.LastDeath = e.cause
	lived := time.Since(w.started)
	if w.ready.IsZero() {
		k.opts.Logger.Warn("a worker has died before it served", "cause", e.cause, "pid", w.process.Pid, "lived_ms", lived.Milliseconds())
	}
	k.cause = e.cause
	if lived > proven {
		k.row = 0
	}
	if !e.foreign {
		k.blame(w)
	}
	// What it had in hand stays in its slots, with how far it got: the next worker
	// has use for that.
	k.judge.forget()
	switch {
	case k.goal == trial && (w.silent || !e.foreign):
		k.takeBack(fmt.Errorf("the new program has died: %s", e.cause))
		return
	case k.goal == trial:
		k.try()
		return
	case e.foreign:
		k.start()
		return
	}
	if w.ready.IsZero() {
		k.failed(errors.New(e.cause))
		return
	}
	k.row++
	k.respawn = time.After(pause(k.row))
}

// blame finds out what the worker has died of, and refuses what has cost too many.
// What it had not begun is none of it: a worker that dies before it serves leaves
// in the slots what the one before it had in hand.
func (k *Keeper) blame(w *worker) {
	inHand := slices.DeleteFunc(k.memory.InHand(), func(r shm.Request) bool { return r.Began < w.since })
	oneAtATime := k.memory.Careful()
	if w.hung {
		inHand, oneAtATime = k.judge.look(inHand), false
	}
	for _, r := range k.judge.died(inHand, oneAtATime) {
		k.state.Refused++
		k.row = 0 // that was it
		k.opts.Logger.Error("a request has cost too many workers: it is answered with EIO",
			"operation", operation(r.Opcode), "unique", r.Unique, "pid", r.PID, "workers", fatal)
		if err := k.refuse(r); err != nil {
			k.opts.Logger.Error("refuse a request", "error", err)
		}
	}
	k.memory.SetCareful(k.judge.suspects())
}

// look watches the worker.
func (k *Keeper) look() {
	w := k.worker
	if w == nil || w.hung || w.silent {
		return
	}
	w.quiet++
	var hung []shm.Request
	if !w.ready.IsZero() {
		hung = k.judge.look(k.memory.InHand())
	}
	switch {
	case w.quiet > sightings:
		k.opts.Logger.Error("the worker says nothing any more: it is killed", "pid", w.process.Pid, "for", k.opts.RequestTimeout)
		w.silent = true
		k.killStuck()
	case len(hung) > 0 && w.quiet <= 2: // else it is the worker that hangs, and not the request
		r := hung[0]
		k.opts.Logger.Error("the worker hangs at a request: it is killed", "operation", operation(r.Opcode), "pid", r.PID,
			"requests", len(hung), "for", k.opts.RequestTimeout)
		w.hung = true
		k.killStuck()
	case !w.ready.IsZero() && time.Since(w.ready) > proven:
		k.row = 0
		k.judge.acquit()
		k.memory.SetCareful(false)
	}
}

func (k *Keeper) killStuck() {
	k.worker.kill()
	// It may be that not even that ends it, as with a disk that does not answer.
	k.setHealthy(false)
}

// giveUp ends the connection: writers get an error instead of waiting.
func (k *Keeper) giveUp() error {
	if !k.attached {
		return fmt.Errorf("%w: %s", ErrNoWorker, k.cause) // nobody has seen the mount
	}
	gap := time.Since(k.since).Round(time.Millisecond)
	k.opts.Logger.Error("no worker can serve: the mount is given up, and writers get errors; restart when the cause is mended",
		"after", gap, "cause", k.cause, "deaths", k.state.Deaths)
	err := k.opts.Manager.Forget()
	if w := k.worker; w != nil {
		w.kill()
		k.worker = nil
		go func() { // it may not die
			<-w.exited
			w.drainMessages()
		}()
	}
	return errors.Join(fmt.Errorf("%w for %s (%s); all that was closed is safe in the store, the mount is dead, and the next start replaces it",
		ErrNoWorker, gap, k.cause), err, k.device.Close())
}

// stop begins the end.
func (k *Keeper) stop(cause error) (done bool, err error) {
	k.opts.Logger.Info("stopping", "cause", cause)
	k.notify("STOPPING=1")
	if k.worker == nil || k.worker.ready.IsZero() && !k.attached {
		k.clear()
		if k.opts.Manager.stores() && k.attached {
			return true, ErrHandedOver
		}
		return true, k.unmount(end{})
	}
	k.deadline = time.After(k.opts.StopTimeout)
	if k.opts.Manager.stores() && !k.forGood {
		k.goal = handOver
		k.yield()
		return false, nil
	}
	k.goal = drain
	if !k.worker.ready.IsZero() {
		k.order(KindDrain)
	}
	return false, nil
}

// yield has the worker end, so that another one takes over.
func (k *Keeper) yield() {
	if k.worker.ready.IsZero() {
		k.worker.kill() // it has nothing to finish
		return
	}
	k.deadline = time.After(k.opts.StopTimeout)
	k.order(KindYield)
}

func (k *Keeper) order(kind Kind) {
	if err := k.worker.tell(Message{Kind: kind}); err != nil {
		k.opts.Logger.Error("the worker cannot be told to end: it is killed", "error", err)
		k.worker.kill()
	}
}

// overdue ends a worker that was told to end and does not.
func (k *Keeper) overdue() {
	if k.worker == nil {
		return
	}
	k.worker.silent = true
	if k.goal == trial {
		k.opts.Logger.Error("the new program does not serve in time: it is killed", "after", k.trialTimeout())
		k.worker.kill()
		return
	}
	k.opts.Logger.Error("the worker does not end: it is killed", "after", k.opts.StopTimeout)
	k.worker.reason = Drained // as far as it got
	k.worker.kill()
}

// forwardReload passes SIGHUP on to a worker that can take it.
func (k *Keeper) forwardReload() {
	if err := k.opts.Manager.Reloading(); err != nil {
		k.opts.Logger.Warn("service manager", "error", err)
	}
	if k.worker == nil || k.worker.ready.IsZero() {
		k.reloadNext = true
		return
	}
	k.reloadNext = false
	if err := k.worker.process.Signal(syscall.SIGHUP); err != nil {
		k.opts.Logger.Error("reload", "error", err)
	}
	k.reloading = time.After(reloadTimeout)
}

// reloadTimeout is how long the service manager is told that a worker reads its
// configuration, if the worker does not say that it has.
const reloadTimeout = 10 * time.Second

func (k *Keeper) reloaded() {
	k.reloading = nil
	k.notify("READY=1")
}

func (k *Keeper) notify(lines ...string) {
	if err := k.opts.Manager.Notify(lines...); err != nil {
		k.opts.Logger.Warn("service manager", "error", err)
	}
}
