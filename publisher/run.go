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
	narrow bool  // the window is one, until no message is suspect
	err    error // why the session was given up; the first reason stays
}

func newRun(p *Publisher, session Session) *run {
	r := &run{
		p: p, session: session,
		ended: make(chan struct{}), slots: make(chan struct{}, p.opts.Window),
	}
	r.narrow = p.suspects.Load() > 0
	if r.narrow {
		r.slots <- struct{}{} // a window of one
	} else {
		r.release(p.opts.Window)
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

// convict deals with a message that made the broker end the session. If it was
// alone in flight it is set aside; else all that were are suspects, and the
// next session sends them one by one, until the culprit stands alone.
func (r *run) convict() error {
	var culprit *CulpritError
	if !errors.As(r.session.Err(), &culprit) {
		return nil
	}
	r.mu.Lock()
	flying := r.flying.all()
	r.mu.Unlock()
	if len(flying) != 1 {
		r.p.suspects.Store(int64(len(flying)))
		return nil
	}
	l := flying[0]
	r.p.suspects.Add(-1)
	r.p.update(func(s *Stats) { s.InvalidTotal++ })
	r.p.opts.Logger.Error("message set aside: the broker refuses it", "id", l.ID, "error", culprit)
	return r.p.opts.Route.DeadLetter(l, "refused-by-broker: "+culprit.Error())
}

// widen opens the window once no message is suspect any more.
func (r *run) widen(confirmed int) {
	if r.p.suspects.Load() <= 0 || r.p.suspects.Add(-int64(confirmed)) > 0 {
		return
	}
	r.mu.Lock()
	narrow := r.narrow
	r.narrow = false
	r.mu.Unlock()
	if narrow {
		r.release(r.p.opts.Window - 1)
	}
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
			err := r.awaitUnblocked(ctx)
			if err == nil {
				err = r.sendOne(l)
				i++
			}
			if err != nil {
				r.p.opts.Route.Requeue(leases[i:]...)
				return err
			}
		}
	}
}

// awaitUnblocked waits while the broker takes nothing: a write would hang.
func (r *run) awaitUnblocked(ctx context.Context) error {
	for r.session.Blocked() != "" {
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return nil
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
		return r.refuse(l, fmt.Errorf("message %s names exchange %.64q, which is not allowed", l.ID, l.Exchange))
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

// maxRefusal is the longest wait of a message that is refused again and again.
const maxRefusal = time.Hour

// refuse delays one message that the configuration does not let through, each
// time for longer, since only a change of the configuration helps.
func (r *run) refuse(l *queue.Lease, reason error) error {
	r.release(1)
	r.p.fail(reason)
	b := backoff{min: r.p.opts.RetryMax, max: maxRefusal}
	return r.p.opts.Route.Nack(l, time.Now().Add(b.ceiling(int(l.Attempts))))
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
