package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Ack removes messages that the broker has confirmed. All leases must be of one
// route.
//
// It does not sync: if it is lost the messages are published once more, with
// the same IDs.
func (r *Route) Ack(leases ...*Lease) error {
	return r.settle(leases, func(*pebble.Batch, *Lease) error { return nil })
}

// Nack makes a message wait until retryAt and counts the attempt, or drops it, in a
// route that coalesces, if a later one about the same waits already. Not synced:
// if it is lost the message is ready at once.
func (r *Route) Nack(l *Lease, retryAt time.Time) error {
	m := *l.Message
	m.Attempts++
	value := encodeRecord(&m)
	due, replaced := max(retryAt.UnixNano(), 1), false
	err := r.settleAsked([]*Lease{l}, func() (err error) {
		replaced, err = r.isReplaced(l)
		return err
	}, func(b *pebble.Batch, l *Lease) error {
		if replaced {
			return r.countReplacedLocked(b, l)
		}
		r.gone.drop(l.seq) // it comes back to its number
		r.count.delayed.add(tally{1, uint64(len(value))})
		r.q.chargeLocked(l.UID, tally{1, uint64(len(value))}, tally{})
		if r.coalesce.Load() && l.Subject != "" {
			if err := r.setHintLocked(b, keyOfSubject(l.UID, l.Subject), hint{l.seq, due}); err != nil {
				return err
			}
		}
		return b.Set(delayedKey(r.id, due, l.seq), value, nil)
	})
	if err == nil && !replaced {
		// Only now promote would find it.
		r.q.mu.Lock()
		r.dueLocked(due)
		r.q.mu.Unlock()
		r.signal() // Lease may have to wait for less long
	}
	return err
}

// dueLocked notes that a message is due; 0 is none.
func (r *Route) dueLocked(due int64) {
	if due != 0 && (r.nextDue == 0 || due < r.nextDue) {
		r.nextDue = due
	}
}

// DeadLetter sets a message aside with its reason. Not synced: if it is lost
// the message is published or refused once more.
func (r *Route) DeadLetter(l *Lease, reason string) error {
	m := *l.Message
	m.Reason = reason
	value := encodeRecord(&m)
	return r.settle([]*Lease{l}, func(b *pebble.Batch, l *Lease) error { return r.setDeadLocked(b, l, value) })
}

// settle ends leases in one batch: their rows go, and with writes for each what
// takes its place.
func (r *Route) settle(leases []*Lease, with func(*pebble.Batch, *Lease) error) error {
	return r.settleAsked(leases, func() error { return nil }, with)
}

// settleAsked is settle with a question before, whose answer holds in a route that
// coalesces.
func (r *Route) settleAsked(leases []*Lease, ask func() error, with func(*pebble.Batch, *Lease) error) error {
	if err := r.q.begin(); err != nil {
		return fmt.Errorf("settle in route %q: %w", r.Name(), err)
	}
	defer r.q.end()
	release := r.orderly(haveSubjects(leases))
	err := ask()
	var w *write
	if err == nil {
		w, err = r.submitSettle(r.q.engine.db.NewBatch(), leases, with)
	}
	release(w)
	if err = r.q.await(w, err); err != nil {
		return fmt.Errorf("settle in route %q: %w", r.Name(), err)
	}
	return nil
}

func (r *Route) submitSettle(b *pebble.Batch, leases []*Lease, with func(*pebble.Batch, *Lease) error) (*write, error) {
	theirs, err := r.forgetting(leases)
	if err != nil {
		return nil, err
	}
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	for _, l := range leases {
		if l.settled {
			return nil, fmt.Errorf("%w: %s", ErrNotLeased, l.ID)
		}
	}
	if err := r.forgetLocked(b, theirs); err != nil {
		return nil, err
	}
	for _, l := range leases {
		if err := r.removeLeasedLocked(b, l); err != nil {
			return nil, err
		}
		if err := with(b, l); err != nil {
			return nil, err
		}
	}
	r.trimLeasedLocked()
	return r.q.submitLocked(b, false, r), nil
}

// Requeue makes messages ready again, in their old places, without counting an
// attempt. Leases that are settled are passed over. Nothing is written, but in a route
// that coalesces: those go that a later message has replaced meanwhile.
func (r *Route) Requeue(leases ...*Lease) {
	r.dropReplaced(leases)
	r.q.mu.Lock()
	for _, l := range leases {
		if !l.settled {
			r.endLeaseLocked(l)
			r.behind.add(span{l.seq, l.seq + 1})
		}
	}
	r.endTurnLocked()
	r.trimLeasedLocked()
	r.q.mu.Unlock()
	r.signal()
}

func (r *Route) endLeaseLocked(l *Lease) {
	l.settled = true
	r.settled++
}

// trimLeasedLocked forgets settled leases: those in front at once, since the
// head of the route is behind them, the others when they are the half.
func (r *Route) trimLeasedLocked() {
	n := 0
	for n < len(r.leased) && r.leased[n].settled {
		n++
	}
	r.leased = slices.Delete(r.leased, 0, n)
	r.settled -= n
	if r.settled > len(r.leased)/2 {
		r.leased = slices.DeleteFunc(r.leased, func(l *Lease) bool { return l.settled })
		r.settled = 0
	}
}
