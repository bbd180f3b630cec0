package queue

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// due is what a promotion has found.
type due struct {
	seqs []uint64
	size tally
	next int64 // when the first message is due that stays; 0 when there is none
}

// promote makes delayed messages ready whose time has come, in their old places,
// but at most max. Not synced: if it is lost they are delayed again.
func (r *Route) promote(now time.Time, max uint64) error {
	r.q.mu.Lock()
	next := r.nextDue
	if next == 0 || next > now.UnixNano() {
		r.q.mu.Unlock()
		return nil
	}
	r.nextDue = 0 // from here on it tells of new ones
	r.q.mu.Unlock()

	b := r.q.engine.db.NewBatch()
	found, err := r.moveDue(b, next, now, max)
	if err == nil {
		err = r.q.await(r.submitPromotion(b, found))
	}
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	if err != nil {
		r.dueLocked(next)
		return err
	}
	r.dueLocked(found.next)
	r.endTurnLocked()
	for _, seq := range found.seqs {
		// Numbers from the cursor on will be come upon: after a restart the
		// cursor may be anywhere.
		if seq < r.cursor {
			r.behind.add(span{seq, seq + 1})
		}
	}
	return nil
}

func (r *Route) submitPromotion(b *pebble.Batch, found due) (*write, error) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	r.count.delayed.sub(found.size)
	r.count.pending.add(found.size)
	for _, seq := range found.seqs {
		r.reading.add(span{seq, seq + 1}) // the head must not pass them
	}
	return r.q.submitLocked(b, false, r), nil
}

// moveDue adds to b what makes due messages ready.
func (r *Route) moveDue(b *pebble.Batch, from int64, now time.Time, max uint64) (due, error) {
	var d due
	// What was due before is gone: its tombstones are not passed over again.
	lo, hi := delayedKey(r.id, from, 0), routeKey(kindDelayed, r.id+1)
	err := r.q.eachRow(lo, hi, func(key, value []byte) error {
		if at := dueOf(key); d.size.count == max || at > now.UnixNano() {
			d.next = at
			return errStop
		}
		seq := lastUint64(key)
		d.seqs = append(d.seqs, seq)
		d.size.add(tally{1, uint64(len(value))})
		if err := b.Set(seqKey(kindMessage, r.id, seq), value, nil); err != nil {
			return err
		}
		return b.Delete(key, nil)
	})
	return d, err
}
