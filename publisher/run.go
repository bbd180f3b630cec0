package publisher

import (
	"context"
	"errors"
	"fmt"
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

	// slots holds a token for each message that may still be sent.
	slots chan struct{}

	mu     sync.Mutex // guards what follows
	flying flights
	err    error // why the session was given up; the first reason stays
}

func newRun(p *Publisher, session Session) *run {
	r := &run{
		p: p, session: session,
		ended: make(chan struct{}), slots: make(chan struct{}, p.opts.Window),
	}
	for range p.opts.Window {
		r.slots <- struct{}{}
	}
	return r
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
	r.giveUp(r.send(sending))
	r.finish()
	r.giveUp(r.session.Close())
	settling.Wait()
	r.giveUp(r.session.Err())
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
// for IdleTimeout.
func (r *run) send(ctx context.Context) error {
	for {
		n := r.acquire(ctx)
		if n == 0 {
			return ctx.Err()
		}
		idle, cancel := context.WithTimeout(ctx, r.p.opts.IdleTimeout)
		leases, err := r.p.opts.Route.Lease(idle, n)
		cancel()
		r.release(n - len(leases))
		if err != nil {
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		}
		for i, l := range leases {
			if err := r.sendOne(l); err != nil {
				r.p.opts.Route.Requeue(leases[i+1:]...)
				return err
			}
		}
	}
}

// acquire waits for a free slot and takes all that are free, but not more than
// fit into one read of the queue.
func (r *run) acquire(ctx context.Context) int {
	const most = 256
	select {
	case <-r.slots:
	case <-ctx.Done():
		return 0
	}
	for n := 1; n < most; n++ {
		select {
		case <-r.slots:
		default:
			return n
		}
	}
	return most
}

func (r *run) release(n int) {
	for range n {
		r.slots <- struct{}{}
	}
}

// sendOne publishes a message, or sets it aside. An error ends the session.
func (r *run) sendOne(l *queue.Lease) error {
	exchange := r.p.opts.Exchange
	if l.Exchange != "" && l.Exchange != exchange {
		return r.refuse(l, fmt.Errorf("message %s names exchange %q, which is not allowed", l.ID, l.Exchange))
	}
	tag := r.takeOff(l)
	err := r.session.Publish(Publication{
		Tag: tag, Exchange: exchange, Key: RoutingKey(r.p.opts.TopicPrefix, l.Message), Message: l.Message,
	})
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	r.land(tag)
	r.release(1)
	r.p.update(func(s *Stats) { s.InvalidTotal++ })
	r.p.opts.Logger.Error("message set aside", "id", l.ID, "reason", invalid.Reason)
	return r.p.opts.Route.DeadLetter(l, invalid.Reason)
}

// refuse delays one message that the configuration does not let through. It
// does so lazily, since only a change of the configuration helps.
func (r *run) refuse(l *queue.Lease, reason error) error {
	r.release(1)
	r.p.fail(reason)
	return r.p.opts.Route.Nack(l, time.Now().Add(r.p.opts.RetryMax))
}

func (r *run) takeOff(l *queue.Lease) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	tag := r.flying.takeOff(l, time.Now())
	r.countLocked()
	return tag
}

func (r *run) land(tag uint64) *queue.Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.flying.land(tag)
	r.countLocked()
	return l
}

func (r *run) countLocked() {
	n := r.flying.len()
	r.p.update(func(s *Stats) { s.InFlight = n })
}

// watch closes a session whose oldest message has waited too long for its
// verdict.
func (r *run) watch(ctx context.Context) {
	period := min(r.p.opts.ConfirmTimeout/4, time.Second)
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		limit := r.p.opts.ConfirmTimeout
		blocked := r.session.Blocked()
		if blocked != "" {
			limit = r.p.opts.BlockedTimeout
		}
		r.mu.Lock()
		age := r.flying.age(time.Now())
		r.mu.Unlock()
		if age > limit {
			r.giveUp(fmt.Errorf("no verdict for %s%s", age.Round(time.Millisecond), suffix(blocked)))
			r.giveUp(r.session.Close())
			return
		}
	}
}

func suffix(blocked string) string {
	if blocked == "" {
		return ""
	}
	return ": the broker blocks publishers: " + blocked
}

// finish gives what is in flight StopTimeout to be confirmed, so that a stop
// causes no duplicate.
func (r *run) finish() {
	deadline := time.NewTimer(r.p.opts.StopTimeout)
	defer deadline.Stop()
	r.mu.Lock()
	landed := r.flying.landed()
	r.mu.Unlock()
	select {
	case <-landed:
	case <-r.ended:
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
