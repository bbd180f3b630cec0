package queue

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Append stores messages and dead letters that are ready at once, all or none,
// and returns when they are on stable storage. A route that is full and DropNewest
// drops and counts them.
func (r *Route) Append(ms []Message) error {
	if err := r.q.begin(); err != nil {
		return fmt.Errorf("append to route %q: %w", r.Name(), err)
	}
	defer r.q.end()
	values := encodeAll(ms)
	sizes := sizeByUser(ms, values)
	if dropped, err := r.dropNewest(sizes); dropped || err != nil {
		return err
	}
	if err := r.admitAll(sizes); err != nil {
		return fmt.Errorf("append to route %q: %w", r.Name(), err)
	}
	release := r.orderly(true)
	e, w, err := r.submitAppend(r.q.engine.db.NewBatch(), values, sizes)
	release(w)
	if err = r.q.await(w, err); err != nil {
		return fmt.Errorf("append to route %q: %w", r.Name(), err)
	}
	r.ready(e)
	return nil
}

// ready lets Lease hand out what was appended, now that it is applied.
func (r *Route) ready(e *extent) {
	r.q.mu.Lock()
	r.dropExtentLocked(e, true)
	r.q.mu.Unlock()
	r.signal()
}

// submitAppend submits the batch. The numbers are those of an extent until they
// are on disk, so that nothing is published that a crash could take back.
func (r *Route) submitAppend(b *pebble.Batch, values []value, sizes map[uint32]tally) (*extent, *write, error) {
	c, err := r.coalesceValues(values)
	if err != nil {
		return nil, nil, err
	}
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	e, err := r.appendLocked(b, values)
	if err == nil {
		err = c.applyLocked(b, e.lo)
	}
	if err != nil {
		return nil, nil, err
	}
	for uid, t := range sizes {
		r.q.chargeLocked(uid, t, tally{})
	}
	// Synced: Q1.
	return e, r.q.submitLocked(b, true, r), nil
}

// appendLocked adds values behind all others. Their extent is to be dropped when
// they are on disk.
func (r *Route) appendLocked(b *pebble.Batch, values []value) (*extent, error) {
	e := &extent{span: span{r.count.next, r.count.next + uint64(len(values))}, since: time.Now()}
	added, err := writeRecords(b, r.id, e.lo, values)
	if err != nil {
		return nil, err
	}
	r.count.next = e.hi
	r.count.enter(added)
	r.addExtentLocked(e)
	return e, nil
}

func sizeByUser(ms []Message, values []value) map[uint32]tally {
	sizes := map[uint32]tally{}
	for i := range ms {
		t := sizes[ms[i].UID]
		t.add(tally{1, uint64(len(values[i].bytes))})
		sizes[ms[i].UID] = t
	}
	return sizes
}

// admitAll asks for several users.
func (r *Route) admitAll(sizes map[uint32]tally) error {
	if err := r.makeRoom(demand{more: sumOf(sizes)}); err != nil {
		return err
	}
	for uid, t := range sizes {
		if err := r.admit(uid, t); err != nil {
			return err
		}
	}
	return nil
}

func sumOf(sizes map[uint32]tally) tally {
	var sum tally
	for _, t := range sizes {
		sum.add(t)
	}
	return sum
}

// dropNewest counts what does not fit into a route that is DropNewest, instead of
// storing it, and reports whether it did.
func (r *Route) dropNewest(sizes map[uint32]tally) (bool, error) {
	w, n := r.submitDropNewest(sumOf(sizes))
	if w == nil {
		return false, nil
	}
	r.logDrops(n, dropsNewest)
	if err := r.q.await(w, nil); err != nil {
		return true, fmt.Errorf("drop from route %q: %w", r.Name(), err)
	}
	return true, nil
}

func (r *Route) submitDropNewest(size tally) (*write, uint64) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	if !r.dropsLocked(size) {
		return nil, 0
	}
	r.count.drops.newest += size.count
	// Synced: the caller takes it for stored, so that the count is all that there is.
	return r.q.submitLocked(r.q.engine.db.NewBatch(), true, r), size.count
}
