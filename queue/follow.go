package queue

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// AckThen removes a confirmed message and makes its follow-up ready in another
// route, both or neither. The follow-up gets the parent's ID and the name of its
// route as its own, so that a parent that is confirmed twice has follow-ups that
// can be told to be the same. Not synced, as Ack.
func (r *Route) AckThen(l *Lease, next *Route, follow Message) error {
	follow.ID = l.ID + ID("/"+next.name)
	follow.UID = l.UID
	value := encodeRecord(&follow)
	if err := r.q.begin(); err != nil {
		return fmt.Errorf("follow up in route %q: %w", next.name, err)
	}
	defer r.q.end()
	e, w, err := r.submitFollow(l, next, value)
	if err = r.q.await(w, err); err != nil {
		return fmt.Errorf("follow up in route %q: %w", next.name, err)
	}
	next.q.mu.Lock()
	next.dropExtentLocked(e, true)
	next.q.mu.Unlock()
	next.signal()
	return nil
}

func (r *Route) submitFollow(l *Lease, next *Route, value []byte) (*extent, *write, error) {
	b := r.q.engine.db.NewBatch()
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	if l.settled {
		return nil, nil, fmt.Errorf("%w: %s", ErrNotLeased, l.ID)
	}
	if err := r.removeLeasedLocked(b, l); err != nil {
		return nil, nil, err
	}
	r.trimLeasedLocked()
	e, err := next.addReadyLocked(b, value)
	if err != nil {
		return nil, nil, err
	}
	r.q.chargeLocked(l.UID, tally{1, uint64(len(value))}, tally{})
	routes := []*Route{r, next}
	if r == next {
		routes = routes[:1]
	}
	w, err := r.q.submitLocked(b, false, routes...)
	return e, w, err
}

// removeLeasedLocked ends a lease and deletes its row.
func (r *Route) removeLeasedLocked(b *pebble.Batch, l *Lease) error {
	r.endLeaseLocked(l)
	r.count.pending.sub(tally{1, l.bytes})
	r.q.chargeLocked(l.UID, tally{}, tally{1, l.bytes})
	return b.Delete(seqKey(kindMessage, r.id, l.seq), nil)
}

// addReadyLocked adds a message at the end of the route. Its number is that of
// an extent until the batch is applied.
func (r *Route) addReadyLocked(b *pebble.Batch, value []byte) (*extent, error) {
	e := &extent{span: span{r.count.next, r.count.next + 1}, since: time.Now()}
	if err := b.Set(seqKey(kindMessage, r.id, e.lo), value, nil); err != nil {
		return nil, err
	}
	r.count.next = e.hi
	r.count.pending.add(tally{1, uint64(len(value))})
	r.addExtentLocked(e)
	return e, nil
}
