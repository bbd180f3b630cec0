package queue

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Commit makes the messages of the stage ready and its dead letters visible, or, if the
// route is DropNewest and over its limits, drops and counts them.
// The stage has ended then. If the queue is parked it is done as soon as the
// store is open again; if the process ends before that, the next Open hands the
// stage back.
func (s *Stage) Commit() error { return s.end(false) }

// Discard removes what the stage holds; see Commit.
func (s *Stage) Discard() error { return s.end(true) }

func (s *Stage) end(discard bool) error {
	s.q.mu.Lock()
	if s.owed {
		discard = s.discard // the first call counts
	}
	err := s.q.begin() // which changes only under q.mu
	if errors.Is(err, ErrFault) && !s.ended {
		s.oweLocked(discard)
	}
	s.q.mu.Unlock()
	if err == nil {
		defer s.q.end()
		if err = s.tryEnd(discard); errors.Is(err, ErrFault) {
			s.q.mu.Lock()
			s.oweLocked(discard)
			s.q.mu.Unlock()
		}
	}
	if err == nil || errors.Is(err, ErrFault) {
		return nil
	}
	return fmt.Errorf("end stage %q: %w", s.info.File, err)
}

// oweLocked leaves the ending to the end of the parking, which cannot have come
// yet: the queue is parked, or waits for this operation.
func (s *Stage) oweLocked(discard bool) {
	s.ended, s.owed, s.discard = true, true, discard
	// Where the batch was lost, the stage is still there.
	s.q.stages[s.file] = s
}

func (s *Stage) tryEnd(discard bool) error {
	release := s.route.orderly(!discard)
	w, how, err := s.conclude(discard)
	release(w)
	if how.drop {
		s.route.logDrops(how.cut.removed.all().count, dropsNewest)
	}
	if how.discard || how.drop {
		return s.gone(s.q.await(w, err))
	}
	// Nobody waits for a commit: if it is lost, the stage is there again.
	err = s.q.leave(w, err)
	s.route.signal()
	return err
}

// drops reports whether what would become ready of the stage, all but the rest, is to be
// dropped. What it replaces makes room for it.
func (s *Stage) drops(rest content, c *coalescing) bool {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	ready := s.content.all()
	ready.sub(rest.all())
	return s.route.dropsLocked(ready.without(c.size()))
}

// ending is how a stage ends.
type ending struct {
	discard, drop bool
	cut           cutting // of all that it holds
	coalescing    *coalescing
}

// conclude finds out how a stage ends and submits that.
func (s *Stage) conclude(discard bool) (w *write, how ending, err error) {
	b := s.q.engine.db.NewBatch()
	if how.discard = discard; !discard {
		if how.coalescing, err = s.coalesce(s.entries); err != nil {
			return nil, how, err
		}
		how.drop = s.drops(content{}, how.coalescing)
	}
	if how.discard || how.drop {
		how.coalescing = nil
		if how.cut, err = s.cut(b, 0); err != nil {
			return nil, how, err
		}
	}
	w, err = s.submitEnd(b, how)
	return w, how, err
}

func (s *Stage) submitEnd(b *pebble.Batch, how ending) (*write, error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.ended && !s.owed {
		return nil, nil
	}
	s.ended, s.owed = true, false
	if s.q.stages[s.file] == nil {
		return nil, nil // nothing was ever put
	}
	delete(s.q.stages, s.file)
	if err := s.deleteHead(b); err != nil {
		return nil, err
	}
	count := &s.route.count
	if how.discard || how.drop {
		s.cutLocked(how.cut)
	}
	if how.drop {
		count.drops.newest += how.cut.removed.all().count
	}
	count.staged.sub(s.content.all())
	count.enter(s.content)
	for _, e := range s.extents {
		s.route.dropExtentLocked(e, true)
	}
	if err := how.coalescing.applyLocked(b, 0); err != nil {
		return nil, err
	}
	// A commit is not synced: if it is lost, the stage is there again, and is
	// committed or dropped then. A discard that was lost would be committed too.
	return s.q.submitLocked(b, how.discard, s.route), nil
}

// deleteHead removes the rows that make this a stage.
func (s *Stage) deleteHead(b *pebble.Batch) error {
	if err := b.Delete(stageKey(s.file), nil); err != nil {
		return err
	}
	if n := uint32(len(s.extents)); n > 8 {
		return b.DeleteRange(chunkKey(s.file, 0), chunkKey(s.file, n), nil)
	}
	for i := range s.extents {
		if err := b.Delete(chunkKey(s.file, uint32(i)), nil); err != nil {
			return err
		}
	}
	return nil
}
