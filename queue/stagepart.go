package queue

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// CommitFirst makes the first n entries ready and remembers up to which offset
// the file is committed then, in one batch. The rest stays staged. It is how a
// file that stays open is published in instalments.
//
// If the route is DropNewest and over its limits, they are dropped and counted instead.
//
// It syncs, since the next Put counts on it. After ErrFault, call it again before
// anything else: it knows whether it was done. Other errors: ErrClosed.
func (s *Stage) CommitFirst(n int, committed uint64) error {
	if err := s.q.begin(); err != nil {
		return fmt.Errorf("commit a part of stage %q: %w", s.info.File, err)
	}
	defer s.q.end()
	if s.Info().Committed == committed {
		return nil
	}
	b := s.q.engine.db.NewBatch()
	part := instalment{n: n, committed: committed}
	release := s.route.orderly(true)
	w, err := s.submitFirst(b, part)
	release(w)
	if err = s.gone(s.q.await(w, err)); err != nil {
		return fmt.Errorf("commit a part of stage %q: %w", s.info.File, err)
	}
	s.route.signal()
	return nil
}

// contentFrom counts what the entries behind the first n hold, which are few.
func (s *Stage) contentFrom(n int) (content, error) {
	var c content
	if n < 0 || n > s.entries {
		return c, fmt.Errorf("first %d of %d entries", n, s.entries)
	}
	for i, from := range s.cutPoints(n) {
		for _, kind := range contentKinds {
			lo, hi := seqKey(kind, s.route.id, from), seqKey(kind, s.route.id, s.extents[i].hi)
			err := s.q.eachRow(lo, hi, func(_, value []byte) error {
				c.addRow(kind, value)
				return nil
			})
			if err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// instalment is what CommitFirst does.
type instalment struct {
	n         int
	committed uint64
	rest      content // behind the first n
	drop      bool

	coalescing *coalescing
}

// submitFirst finds out what an instalment does and submits that.
func (s *Stage) submitFirst(b *pebble.Batch, part instalment) (w *write, err error) {
	if part.rest, err = s.contentFrom(part.n); err != nil {
		return nil, err
	}
	if part.coalescing, err = s.coalesce(part.n); err != nil {
		return nil, err
	}
	if part.drop = s.drops(part.rest, part.coalescing); part.drop {
		part.coalescing = nil
	}
	return s.commitIn(b, part)
}

func (s *Stage) commitIn(b *pebble.Batch, part instalment) (*write, error) {
	r := s.route
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.ended {
		return nil, ErrClosed
	}
	if err := s.deleteHead(b); err != nil {
		return nil, err
	}
	done := s.content
	done.sub(part.rest)
	if err := s.releaseLocked(b, part); err != nil {
		return nil, err
	}
	s.content, s.entries, s.info.Committed = part.rest, s.entries-part.n, part.committed
	r.count.staged.sub(done.all())
	if part.drop {
		r.count.drops.newest += done.all().count
		s.q.chargeLocked(s.info.UID, tally{}, done.all())
	} else {
		r.count.enter(done)
	}
	if err := part.coalescing.applyLocked(b, 0); err != nil {
		return nil, err
	}
	for i, e := range s.extents {
		if err := b.Set(chunkKey(s.file, uint32(i)), encodeChunk(e.span), nil); err != nil {
			return nil, err
		}
	}
	if err := b.Set(stageKey(s.file), s.encode(), nil); err != nil {
		return nil, err
	}
	return s.q.submitLocked(b, true, r), nil
}

// releaseLocked lets go of the numbers of the first entries, which are ready, or
// removed.
func (s *Stage) releaseLocked(b *pebble.Batch, part instalment) error {
	r, left := s.route, uint64(part.n)
	for left > 0 {
		e := s.extents[0]
		r.dropExtentLocked(e, false)
		done := span{e.lo, min(e.hi, e.lo+left)}
		left -= done.hi - done.lo
		if part.drop {
			if err := s.dropRowsLocked(b, done, e.since); err != nil {
				return err
			}
		} else if done.lo < r.cursor {
			r.passedOverLocked(done) // as a whole
		}
		s.extents = s.extents[1:]
		if e.lo = done.hi; e.lo < e.hi {
			r.addExtentLocked(e)
			s.extents = append([]*extent{e}, s.extents...)
		}
	}
	return nil
}

// dropRowsLocked deletes what has some numbers. Until that is applied Lease waits for
// them, see gone.
func (s *Stage) dropRowsLocked(b *pebble.Batch, sp span, since time.Time) error {
	for _, kind := range contentKinds {
		if err := b.DeleteRange(seqKey(kind, s.route.id, sp.lo), seqKey(kind, s.route.id, sp.hi), nil); err != nil {
			return err
		}
	}
	if sp.hi > s.route.cursor {
		going := &extent{span: sp, since: since}
		s.route.addExtentLocked(going)
		s.going = append(s.going, going)
	}
	return nil
}
