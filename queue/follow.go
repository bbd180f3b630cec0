package queue

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// AckThen removes a confirmed message and makes its follow-up ready in another
// route, both or neither. The follow-up gets the parent's ID and the name of its
// route as its own, so that a parent that is confirmed twice has follow-ups that
// can be told to be the same. Not synced, as Ack.
func (r *Route) AckThen(l *Lease, next *Route, follow Message) error {
	follow.ID = l.ID + ID("/"+next.name)
	follow.UID = l.UID
	record := encodeRecord(&follow)
	if err := r.q.begin(); err != nil {
		return fmt.Errorf("follow up in route %q: %w", next.name, err)
	}
	defer r.q.end()
	e, w, err := r.submitFollow(l, next, record)
	if err = r.q.await(w, err); err != nil {
		return fmt.Errorf("follow up in route %q: %w", next.name, err)
	}
	next.ready(e)
	return nil
}

func (r *Route) submitFollow(l *Lease, next *Route, record []byte) (*extent, *write, error) {
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
	e, err := next.appendLocked(b, []value{{kindMessage, record}})
	if err != nil {
		return nil, nil, err
	}
	r.q.chargeLocked(l.UID, tally{1, uint64(len(record))}, tally{})
	routes := []*Route{r, next}
	if r == next {
		routes = routes[:1]
	}
	return e, r.q.submitLocked(b, false, routes...), nil
}

// removeLeasedLocked ends a lease and deletes its row.
func (r *Route) removeLeasedLocked(b *pebble.Batch, l *Lease) error {
	r.endLeaseLocked(l)
	r.count.pending.sub(tally{1, l.bytes})
	r.q.chargeLocked(l.UID, tally{}, tally{1, l.bytes})
	return b.Delete(seqKey(kindMessage, r.id, l.seq), nil)
}
