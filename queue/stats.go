package queue

import (
	"slices"
	"time"
)

// Stats is a snapshot of one route or of all. The counts are disjoint; they are
// of messages, but for Partial, which is of files.
type Stats struct {
	Ready   uint64 // waiting to be published
	Leased  uint64 // being published
	Delayed uint64 // refused, waiting to be tried again
	Dead    uint64 // set aside with a reason
	Partial uint64 // files whose writer did not get to their end
	Staged  uint64 // written, but the file is not closed for good

	// Damaged counts what could not be read since the store was made and was
	// set aside; see DamageReport. It belongs to no route.
	Damaged uint64

	// Bytes is the size of all their stored records before compression.
	Bytes uint64

	// What the options of routes have removed, since the store was made: messages
	// that DropOldest and DropNewest have dropped.
	DroppedOldest, DroppedNewest uint64

	// Coalesced counts those that were replaced by later ones about the same.
	Coalesced uint64

	// Oldest is when the oldest message was stored that is ready or leased;
	// zero when there is none.
	Oldest time.Time
}

func (s *Stats) add(o Stats) {
	s.Ready += o.Ready
	s.Leased += o.Leased
	s.Delayed += o.Delayed
	s.Dead += o.Dead
	s.Partial += o.Partial
	s.Staged += o.Staged
	s.Bytes += o.Bytes
	s.DroppedOldest += o.DroppedOldest
	s.DroppedNewest += o.DroppedNewest
	s.Coalesced += o.Coalesced
	if s.Oldest.IsZero() || !o.Oldest.IsZero() && o.Oldest.Before(s.Oldest) {
		s.Oldest = o.Oldest
	}
}

// Faults is how often the store has failed and was opened again.
func (q *Queue) Faults() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.parks
}

// Stats returns the sum over all routes. Its cost does not depend on the number
// of messages.
func (q *Queue) Stats() (Stats, error) {
	var sum Stats
	q.mu.Lock()
	sum.Damaged = q.damage.Damaged
	routes := make([]*Route, 0, len(q.routes))
	for _, r := range q.routes {
		routes = append(routes, r)
	}
	q.mu.Unlock()
	for _, r := range routes {
		s, err := r.Stats()
		if err != nil {
			return sum, err
		}
		sum.add(s)
	}
	return sum, nil
}

// Stats returns the numbers of the route.
func (r *Route) Stats() (Stats, error) {
	if err := r.q.begin(); err != nil {
		return Stats{}, err
	}
	defer r.q.end()
	s, first := r.counts()
	if !s.Oldest.IsZero() || s.Ready == 0 {
		return s, nil
	}
	oldest, err := r.oldest(first)
	s.Oldest = oldest
	return s, err
}

// counts returns all but the age of messages on disk, and where to look for the
// oldest of them.
func (r *Route) counts() (Stats, spans) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	c := r.count
	leased := uint64(len(r.leased) - r.settled)
	s := Stats{
		Ready: c.pending.count - leased, Leased: leased,
		Delayed: c.delayed.count, Dead: c.dead.count, Partial: c.partial.count,
		Staged: c.staged.count, Bytes: c.all().bytes,
		DroppedOldest: c.drops.oldest, DroppedNewest: c.drops.newest, Coalesced: c.drops.coalesced,
	}
	if first := r.waitingLocked(64); len(first) > 0 && (leased == 0 || first[0].lo < r.leased[0].seq) {
		return s, first
	}
	if leased > 0 {
		s.Oldest = r.leased[0].Ingested
		return s, nil
	}
	return s, r.gapsLocked(span{r.cursor, r.count.next}, 64)
}

// waitingLocked lists the first ranges that hold what is ready behind the cursor: all,
// in a route that is NewestFirst, where not each number has a message.
func (r *Route) waitingLocked(most int) spans {
	first := slices.Clone(r.behind[:min(most, len(r.behind))])
	for _, sp := range r.turn {
		first.add(sp)
	}
	return first
}

// gapsLocked lists the first ranges within a span that no stage covers.
func (r *Route) gapsLocked(within span, most int) spans {
	var gaps spans
	pos := within.lo
	i := r.searchStagedLocked(pos)
	if i > 0 {
		pos = max(pos, r.staged[i-1].hi)
	}
	for ; i < len(r.staged) && r.staged[i].lo < within.hi && len(gaps) < most; i++ {
		gaps.add(span{pos, r.staged[i].lo})
		pos = r.staged[i].hi
	}
	if len(gaps) < most {
		gaps.add(span{pos, within.hi})
	}
	return gaps
}

// oldest returns the time of the first message within the given numbers.
func (r *Route) oldest(within spans) (at time.Time, err error) {
	for _, sp := range within {
		lo, hi := seqKey(kindMessage, r.id, sp.lo), seqKey(kindMessage, r.id, sp.hi)
		err = r.q.eachRow(lo, hi, func(_, value []byte) error {
			if m, err := decodeRecord(value); err == nil {
				at = m.Ingested
			}
			return errStop
		})
		if err != nil || !at.IsZero() {
			break
		}
	}
	return at, err
}
