package publisher

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"spoolfs/queue"
)

// run is the life of one session: one goroutine leases and publishes, one
// settles by the verdicts.
type run struct {
	p       *Publisher
	session Session

	// stop ends the sending.
	stop context.CancelFunc

	// ended is closed when no more verdicts come.
	ended chan struct{}

	mu     sync.Mutex // guards what follows
	flying flights
	err    error // why the session was given up; the first reason stays
}

func newRun(p *Publisher, session Session) *run {
	p.window.clear()
	return &run{p: p, session: session, ended: make(chan struct{})}
}

// publish sends until ctx ends, the session ends, or nothing is left to send
// for IdleTimeout. When it returns the session is closed and what has no
// verdict is ready again.
func (r *run) publish(ctx context.Context) error {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	r.stop = stop
	var settling sync.WaitGroup
	settling.Go(func() {
		defer close(r.ended)
		defer stop()
		r.settle()
	})
	settling.Go(func() { r.watch(sending) })
	sendErr := r.send(sending)
	r.finish()
	closeErr := r.session.Close()
	settling.Wait()
	// The session knows best; what failed after its end is a consequence.
	r.giveUp(r.session.Err())
	r.giveUp(sendErr)
	r.giveUp(closeErr)
	r.giveUp(r.convict())
	r.requeue()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// giveUp notes why the session ends, if nothing is noted yet.
func (r *run) giveUp(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && err != nil && !errors.Is(err, context.Canceled) {
		r.err = err
	}
}

// send leases and publishes. It returns nil when there has been nothing to send
// for IdleTimeout, and no verdict is missing: whether one is overdue is for the
// watchdog to say.
func (r *run) send(ctx context.Context) error {
	for {
		r.p.window.hold(r.p.inFlight())
		n := r.p.window.acquire(ctx, r.p.batch())
		if n == 0 {
			return ctx.Err()
		}
		leases, err := r.lease(ctx, n)
		r.p.window.release(n - len(leases))
		if err == nil {
			err = r.sendAll(ctx, leases)
		}
		if err == nil && len(leases) < min(n, fewLeases) && r.p.inFlight() == 0 {
			err = sleep(ctx, gatherTime)
		}
		if errors.Is(err, errIdle) && r.isEmpty() {
			return nil
		}
		if err != nil && !errors.Is(err, errIdle) {
			return err
		}
	}
}

// gatherTime is how long messages come together after there were few, and fewLeases how
// many are worth no wait: to lease and send each of them as it comes took a quarter of the
// CPU time of all, and more of the broker's. One that comes later than that does not wait.
// Where the newest goes first there is no time for it.
const (
	gatherTime = 5 * time.Millisecond
	fewLeases  = 16
)

// freshBatch is how many messages are taken at a time in a route whose newest goes first:
// what comes waits until they are sent. With leaseBatch it waited 26 ms at 10,000 messages
// a second.
const freshBatch = 16

// freshFlight is how many messages are in flight at most in such a route, since a fresh one
// waits for them, too: at 10,000 messages a second for 25 ms instead of 100. A bare client
// had 12,300 messages a second confirmed with 256 in flight, and 14,400 with 1,024.
const freshFlight = 256

// inFlight is how many messages may be in flight, besides what the window says; 0 is any
// number.
func (p *Publisher) inFlight() int {
	if p.opts.Route.Options().Order == queue.NewestFirst {
		return freshFlight
	}
	return 0
}

// batch is how many messages it is of use to lease.
func (p *Publisher) batch() int {
	if p.opts.Route.Options().Order == queue.NewestFirst {
		return min(freshBatch, p.pace.burst())
	}
	return p.pace.burst()
}

// errIdle says that there has been nothing to send for IdleTimeout.
var errIdle = errors.New("nothing to send")

// lease takes messages that are not too old.
func (r *run) lease(ctx context.Context, n int) ([]*queue.Lease, error) {
	idle, cancel := context.WithTimeout(ctx, r.p.opts.IdleTimeout)
	defer cancel()
	leases, err := r.p.opts.Route.Lease(idle, n)
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil, errIdle
		}
		return nil, err
	}
	leases, err = r.p.expire(leases)
	if err != nil {
		r.p.opts.Route.Requeue(leases...)
		return nil, err
	}
	return leases, nil
}

// sendAll publishes messages, for which there is room. After a nack it puts
// back what it has not sent yet.
func (r *run) sendAll(ctx context.Context, leases []*queue.Lease) error {
	for i, l := range leases {
		err := r.awaitTurn(ctx)
		if err == nil && r.p.window.paused() {
			r.p.opts.Route.Requeue(leases[i:]...)
			r.p.window.release(len(leases) - i)
			break
		}
		if err == nil {
			err = r.sendOne(l)
			i++
		}
		if err != nil {
			r.p.opts.Route.Requeue(leases[i:]...)
			return errors.Join(err, r.session.Flush())
		}
	}
	return r.session.Flush()
}

// awaitTurn waits while the broker takes nothing, as a write would hang, and
// until the rate lets a message through. What was published before does not wait
// with it.
func (r *run) awaitTurn(ctx context.Context) error {
	if r.session.Blocked() == "" && r.p.pace.limiter == nil {
		return nil
	}
	if err := r.session.Flush(); err != nil {
		return err
	}
	for r.session.Blocked() != "" {
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return r.p.pace.wait(ctx)
}

// sleep waits for some time, or until ctx ends, which is its error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// sendOne publishes a message, or sets it aside. An error ends the session.
func (r *run) sendOne(l *queue.Lease) error {
	if done, err := r.screen(l); done {
		return err
	}
	tag := r.takeOff(l)
	err := r.hand(l, tag)
	if len(l.Body) >= largeBody {
		r.handed(tag)
	}
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	r.land(tag)
	r.p.window.release(1)
	r.p.window.acquit(1)
	failed := r.p.settle(flight{lease: l}, Invalid, invalid.Reason)
	if failed == nil && err != error(invalid) {
		failed = err // the session is broken as well
	}
	return failed
}

// hand gives a message to the session. One that makes our code panic must not do
// so again after each restart: it is invalid, and the session is not to be
// trusted any more.
func (r *run) hand(l *queue.Lease, tag uint64) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			r.p.opts.Logger.Error("panic", "id", l.ID, "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("publish %s: %w", l.ID, &InvalidError{Reason: fmt.Sprintf("panic: %v", cause)})
		}
	}()
	return r.session.Publish(Publication{
		Tag: tag, Exchange: r.p.exchanges.of(l.Message),
		Key: r.p.opts.routingKey(l.Message), Message: l.Message,
	})
}

// screen settles a message that is not to be published to the exchange that it
// names, and reports whether it has.
func (r *run) screen(l *queue.Lease) (done bool, err error) {
	e := &r.p.exchanges
	if !e.named(l.Message) {
		return false, nil
	}
	if r.p.forgive.Swap(false) {
		e.lazy = nil
	}
	switch {
	case !e.allows(l.Exchange):
		r.p.fail(&Fault{Class: LazyMessage, Cause: NotAllowed,
			Err: fmt.Errorf("message %s names exchange %.64q, which is not allowed", l.ID, l.Exchange)})
	case e.avoided(l.Exchange, time.Now()):
	default:
		return false, nil
	}
	r.p.window.release(1)
	r.p.window.acquit(1)
	return true, r.p.settle(flight{lease: l}, LazyMessage, "")
}

func (r *run) isEmpty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flying.len() == 0
}

func (r *run) takeOff(l *queue.Lease) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	tag := r.flying.takeOff(l, time.Now())
	r.p.window.weigh(weight(l.Message))
	r.countLocked()
	return tag
}

// weight is about how many bytes a message has.
func weight(m *queue.Message) int {
	size := len(m.Body)
	for _, h := range m.Headers {
		size += len(h.Name) + len(h.Value)
	}
	return size
}

func (r *run) handed(tag uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying.handed(tag, time.Now())
}

// land takes a message out of flight; a flight without a lease says that it was
// not in the air.
func (r *run) land(tag uint64) flight {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.flying.land(tag)
	if f.lease != nil {
		r.p.window.weigh(-weight(f.lease.Message))
	}
	r.countLocked()
	return f
}

func (r *run) countLocked() {
	n := r.flying.len()
	r.p.update(func(s *Stats) { s.InFlight = n })
}

// finish gives what is in flight StopTimeout to be confirmed, so that a stop
// causes no duplicate.
func (r *run) finish() {
	if r.session.Blocked() != "" {
		return // nothing will come
	}
	deadline := time.NewTimer(r.p.opts.StopTimeout)
	defer deadline.Stop()
	r.mu.Lock()
	landed := r.flying.landed()
	r.mu.Unlock()
	select {
	case <-landed:
	case <-r.ended:
	case <-r.p.hard:
	case <-deadline.C:
	}
}

// requeue makes ready again what is still in flight.
func (r *run) requeue() {
	r.mu.Lock()
	left := r.flying.all()
	r.flying = flights{}
	r.countLocked()
	r.mu.Unlock()
	r.p.opts.Route.Requeue(left...)
	r.p.update(func(s *Stats) { s.RequeuedTotal += uint64(len(left)) })
}
