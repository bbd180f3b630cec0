package queue

import (
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// A route may coalesce: while a message waits, a later one about the same Subject, of the
// same user, replaces it.
//
//   - It does so when it becomes ready, in the batch that makes it so: a crash leaves the
//     old one or the new one. (A writer's close is the Put before; it costs no sync more.)
//   - The one that is left has its own place in the order, the later one: else it could
//     overtake what was stored between the two, and what is about something that it needs.
//   - Later is what has the larger number and was not stored before. In one file the last
//     line wins.
//   - What is leased is on its way and is not replaced. When it comes back, it is dropped if
//     a later one is there by then, and at the latest when it would be leased again. So of
//     two that wait only the later one is sent; but in a route that is NewestFirst a crash
//     may have what was on its way sent once more, after the later one.
//   - What is delayed is replaced as what is ready is. Dead letters stay, and messages
//     without a Subject have no part in it.
//   - Each that was replaced is counted in the batch that removes it.
//
// Where the last message about a subject is, is told by a row of its own, which rides in
// batches that are there anyway. It is a hint: no message is dropped before the row of the
// later one was read and says the same, so that one that is old, or missing, costs a
// message sent too many and never one too few. It goes with its message when that is
// acknowledged; what is left behind in other ways is removed by tend.
//
// All who read hints and act upon them hold Route.leasing until what they have done is
// applied: nothing is leased, purged or replaced meanwhile. What is leased may be settled
// without it, so that it is told apart before its row is read.

// coalescing is what changes when messages become ready.
type coalescing struct {
	route  *Route
	first  uint64 // the number of the first message, if that was not known yet
	latest map[subjectKey]subjected
	gone   []subjected
}

// orderly holds what coalescing needs to be held for the route, if it is one that does
// that; release waits until a write is applied.
func (r *Route) orderly(needed bool) (release func(*write)) {
	if !needed || !r.coalesce.Load() {
		return func(*write) {}
	}
	r.leasing.Lock()
	return func(w *write) {
		if w != nil {
			_ = r.q.engine.awaitApplied(w.group) // whoever awaits it is told
		}
		r.leasing.Unlock()
	}
}

// coalesce finds what the first n entries of a stage replace. Only the owner of the stage
// changes its rows.
func (s *Stage) coalesce(n int) (*coalescing, error) {
	if !s.route.coalesce.Load() {
		return nil, nil
	}
	var fresh []subjected
	left := uint64(n)
	for _, e := range s.extents {
		size := min(left, e.hi-e.lo)
		left -= size
		lo, hi := seqKey(kindMessage, s.route.id, e.lo), seqKey(kindMessage, s.route.id, e.lo+size)
		err := s.q.eachRow(lo, hi, func(key, value []byte) error {
			if m, ok := subjectedOf(hint{seq: lastUint64(key)}, value); ok {
				fresh = append(fresh, m)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return s.route.coalesceFresh(fresh)
}

// coalesceValues finds what messages replace that are appended.
func (r *Route) coalesceValues(values []value) (*coalescing, error) {
	if !r.coalesce.Load() {
		return nil, nil
	}
	r.q.mu.Lock()
	next := r.count.next // its number will be that, or larger
	r.q.mu.Unlock()
	var fresh []subjected
	for i, v := range values {
		if v.kind != kindMessage {
			continue
		}
		if m, ok := subjectedOf(hint{seq: next + uint64(i)}, v.bytes); ok {
			fresh = append(fresh, m)
		}
	}
	c, err := r.coalesceFresh(fresh)
	if c != nil {
		c.first = next
	}
	return c, err
}

// coalesceFresh finds what messages replace that become ready.
func (r *Route) coalesceFresh(fresh []subjected) (*coalescing, error) {
	if len(fresh) == 0 {
		return nil, nil
	}
	c := &coalescing{route: r, latest: map[subjectKey]subjected{}}
	for _, m := range fresh {
		m.fresh = true
		if before, twice := c.latest[m.about]; twice && m.follows(&before) {
			c.gone = append(c.gone, before)
		}
		c.latest[m.about] = m
	}
	known, err := r.hintsOf(c.latest)
	if err != nil {
		return nil, err
	}
	// What was leased when it was asked may be settled, and its row be gone, or not yet.
	leased := r.leasedOf(known)
	if err := r.q.engine.barrier(len(known) > 0); err != nil {
		return nil, err
	}
	for about, h := range known {
		old, found, err := r.standing(about, h)
		if err != nil {
			return nil, err
		}
		if found {
			c.meet(old, leased[h.seq])
		}
	}
	return c, nil
}

// meet has a message that is there already, and the fresh one about the same, replace each
// other: one that was committed late may be the older one.
func (c *coalescing) meet(old subjected, leased bool) {
	fresh := c.latest[old.about]
	switch {
	case fresh.follows(&old) && !leased:
		c.gone = append(c.gone, old)
	case old.follows(&fresh):
		c.gone = append(c.gone, fresh)
		delete(c.latest, old.about)
	}
}

// hintsOf reads the hints of subjects.
func (r *Route) hintsOf(about map[subjectKey]subjected) (map[subjectKey]hint, error) {
	known := map[subjectKey]hint{}
	for key := range about {
		h, found, err := r.hintOf(key)
		if err != nil {
			return nil, err
		}
		if found {
			known[key] = h
		}
	}
	return known, nil
}

// leasedOf tells which of some messages are leased.
func (r *Route) leasedOf(known map[subjectKey]hint) map[uint64]bool {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	leased := map[uint64]bool{}
	for _, h := range known {
		// Those that have ended may stand there with the same number.
		i, _ := slices.BinarySearchFunc(r.leased, h.seq, compareLease)
		for ; i < len(r.leased) && r.leased[i].seq == h.seq; i++ {
			leased[h.seq] = leased[h.seq] || !r.leased[i].settled
		}
	}
	return leased
}

// barrier waits until what was submitted is applied, and can be read.
func (e *engine) barrier(needed bool) error {
	if !needed {
		return nil
	}
	e.committing.Lock()
	e.drain()
	e.committing.Unlock()
	e.nudge()
	if e.hasFailed() {
		return e.err
	}
	return nil
}

// size is how much is removed.
func (c *coalescing) size() (t tally) {
	if c == nil {
		return t
	}
	for i := range c.gone {
		t.add(c.gone[i].size())
	}
	return t
}

// applyLocked makes the change part of the batch that makes messages ready, the first of
// which has a number that is known now.
func (c *coalescing) applyLocked(b *pebble.Batch, first uint64) error {
	if c == nil {
		return nil
	}
	r, shift := c.route, uint64(0)
	if c.first != 0 {
		shift = first - c.first
	}
	for _, m := range c.gone {
		if m.fresh {
			m.hint.seq += shift
		}
		if err := r.removeWaitingLocked(b, &m); err != nil {
			return err
		}
	}
	r.count.drops.coalesced += uint64(len(c.gone))
	for about, m := range c.latest {
		m.hint.seq += shift
		if err := r.setHintLocked(b, about, m.hint); err != nil {
			return err
		}
	}
	return nil
}

// removeWaitingLocked removes a message that is ready or delayed.
func (r *Route) removeWaitingLocked(b *pebble.Batch, m *subjected) error {
	r.q.chargeLocked(m.uid, tally{}, m.size())
	r.goneLocked(m.hint.seq)
	if m.hint.due != 0 {
		r.count.delayed.sub(m.size())
		return b.Delete(delayedKey(r.id, m.hint.due, m.hint.seq), nil)
	}
	r.count.pending.sub(m.size())
	return b.Delete(seqKey(kindMessage, r.id, m.hint.seq), nil)
}

func (r *Route) setHintLocked(b *pebble.Batch, about subjectKey, h hint) error {
	r.hinted = true
	return b.Set(hintKey(r.id, about), h.encode(), nil)
}

// isReplaced reports whether there is a later message about the same as a lease.
func (r *Route) isReplaced(l *Lease) (bool, error) {
	if l.Subject == "" {
		return false, nil
	}
	own := subjected{hint: hint{seq: l.seq}, ingested: unixNano(l.Ingested)}
	about := keyOfSubject(l.UID, l.Subject)
	h, found, err := r.hintOf(about)
	if err != nil || !found || h.seq <= l.seq {
		return false, err
	}
	later, found, err := r.standing(about, h)
	return found && later.follows(&own), err
}

// wasReplaced is isReplaced for what is to be sent: if that cannot be told, it is.
func (r *Route) wasReplaced(l *Lease) bool {
	is, err := r.isReplaced(l)
	return is && err == nil
}

// passReplaced drops those of messages that are just leased that a later one has replaced
// while they were leased before. It holds leasing.
func (r *Route) passReplaced(leases []*Lease) ([]*Lease, error) {
	if !r.coalesce.Load() {
		return leases, nil
	}
	var replaced []*Lease
	left := leases[:0:0]
	for _, l := range leases {
		if r.wasReplaced(l) {
			replaced = append(replaced, l)
		} else {
			left = append(left, l)
		}
	}
	if len(replaced) == 0 {
		return leases, nil
	}
	w, err := r.submitSettle(r.q.engine.db.NewBatch(), replaced, r.countReplacedLocked)
	return left, r.q.await(w, err)
}

// dropReplaced is passReplaced for leases that come back, some of which may be settled.
// If that fails, they wait until they are leased.
func (r *Route) dropReplaced(leases []*Lease) {
	if !r.coalesce.Load() || !haveSubjects(leases) || r.q.begin() != nil {
		return
	}
	defer r.q.end()
	defer r.orderly(true)(nil)
	r.q.mu.Lock()
	open := slices.DeleteFunc(slices.Clone(leases), func(l *Lease) bool { return l.settled })
	r.q.mu.Unlock()
	_, _ = r.passReplaced(open)
}

func (r *Route) countReplacedLocked(*pebble.Batch, *Lease) error {
	r.count.drops.coalesced++
	return nil
}
