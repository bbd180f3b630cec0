package queue

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Redrive makes dead letters ready again, at the end of the route and with their
// IDs, and returns how many. revise is asked for each in the order in which they
// were stored: it may change the message (decode its body anew, for one that was
// never a message) and reports whether it is to go. It must not call the queue.
// Reason and Attempts are reset.
//
// It goes in batches that are synced; after an error what was done is done.
func (r *Route) Redrive(revise func(*Message) bool) (int, error) {
	return r.eachDead("redrive", func(b *pebble.Batch, row deadRow) (*extent, error) {
		if !revise(row.message) {
			return nil, errSkip
		}
		row.message.Reason, row.message.Attempts = "", 0
		row.message.UID = row.uid // is charged for it
		value := encodeRecord(row.message)
		r.q.chargeLocked(row.uid, tally{1, uint64(len(value))}, tally{})
		return r.addReadyLocked(b, value)
	})
}

// PurgeDead removes the dead letters that match, and returns how many.
func (r *Route) PurgeDead(match func(*Message) bool) (int, error) {
	return r.eachDead("purge", func(_ *pebble.Batch, row deadRow) (*extent, error) {
		if !match(row.message) {
			return nil, errSkip
		}
		return nil, nil
	})
}

// deadRow is a dead letter on disk.
type deadRow struct {
	seq     uint64
	bytes   uint64
	uid     uint32
	message *Message
}

// eachDead removes each dead letter for which act does not return errSkip, in
// synced batches of a page.
func (r *Route) eachDead(what string, act func(*pebble.Batch, deadRow) (*extent, error)) (int, error) {
	total := 0
	for from := uint64(0); ; {
		n, next, err := r.deadPage(from, act)
		total += n
		if err != nil {
			return total, fmt.Errorf("%s in route %q: %w", what, r.name, err)
		}
		if next == from {
			return total, nil
		}
		from = next
	}
}

func (r *Route) deadPage(from uint64, act func(*pebble.Batch, deadRow) (*extent, error)) (int, uint64, error) {
	if err := r.q.begin(); err != nil {
		return 0, from, err
	}
	defer r.q.end()
	// Only one at a time may remove what it has read.
	r.leasing.Lock()
	defer r.leasing.Unlock()
	page, next, err := r.page(kindDead, from)
	if err != nil {
		return 0, from, err
	}
	n, extents, w, err := r.submitDead(page, act)
	if err = r.q.await(w, err); err != nil {
		return 0, from, err
	}
	r.q.mu.Lock()
	for _, e := range extents {
		r.dropExtentLocked(e, true)
	}
	r.q.mu.Unlock()
	r.signal()
	return n, next, nil
}

func (r *Route) submitDead(page []row, act func(*pebble.Batch, deadRow) (*extent, error)) (n int, extents []*extent, w *write, err error) {
	b := r.q.engine.db.NewBatch()
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	for _, row := range page {
		dead := deadRow{row.seq, row.bytes, row.message.UID, row.message}
		e, err := act(b, dead)
		if err == errSkip {
			continue
		}
		if err != nil {
			return 0, nil, nil, err
		}
		if e != nil {
			extents = append(extents, e)
		}
		n++
		r.count.dead.sub(tally{1, dead.bytes})
		r.q.chargeLocked(dead.uid, tally{}, tally{1, dead.bytes})
		if err := b.Delete(seqKey(kindDead, r.id, dead.seq), nil); err != nil {
			return 0, nil, nil, err
		}
	}
	if n == 0 {
		return 0, nil, nil, nil
	}
	w, err = r.q.submitLocked(b, true, r)
	return n, extents, w, err
}

// PurgePending removes the messages that match and are ready, and returns how
// many. What is leased at the moment stays.
func (r *Route) PurgePending(match func(*Message) bool) (int, error) {
	total := 0
	for from := uint64(0); ; {
		n, next, err := r.purgePage(from, match)
		total += n
		if err != nil {
			return total, fmt.Errorf("purge in route %q: %w", r.name, err)
		}
		if next == from {
			return total, nil
		}
		from = next
	}
}

func (r *Route) purgePage(from uint64, match func(*Message) bool) (int, uint64, error) {
	if err := r.q.begin(); err != nil {
		return 0, from, err
	}
	defer r.q.end()
	r.leasing.Lock()
	defer r.leasing.Unlock()
	page, next, err := r.page(kindMessage, from)
	if err != nil {
		return 0, from, err
	}
	n, w, err := r.submitPurge(page, match)
	if err = r.q.await(w, err); err != nil {
		return 0, from, err
	}
	return n, next, nil
}

func (r *Route) submitPurge(page []row, match func(*Message) bool) (n int, w *write, err error) {
	b := r.q.engine.db.NewBatch()
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	leased := map[uint64]bool{}
	for _, l := range r.leased {
		leased[l.seq] = !l.settled
	}
	for _, row := range page {
		if leased[row.seq] || !match(row.message) {
			continue
		}
		n++
		r.count.pending.sub(tally{1, row.bytes})
		r.q.chargeLocked(row.message.UID, tally{}, tally{1, row.bytes})
		if err := b.Delete(seqKey(kindMessage, r.id, row.seq), nil); err != nil {
			return 0, nil, err
		}
	}
	if n == 0 {
		return 0, nil, nil
	}
	w, err = r.q.submitLocked(b, true, r)
	return n, w, err
}
