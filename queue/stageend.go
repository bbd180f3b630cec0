package queue

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Commit makes the messages of the stage ready and its dead letters visible.
// The stage has ended then, whatever Commit returns: if the queue failed, the
// next Open hands it back.
func (s *Stage) Commit() error { return s.end(true) }

// Discard removes what the stage holds.
func (s *Stage) Discard() error { return s.end(false) }

func (s *Stage) end(commit bool) error {
	if err := s.q.begin(); err != nil {
		return fmt.Errorf("end stage %q: %w", s.info.File, err)
	}
	defer s.q.end()
	b := s.q.db.NewBatch()
	defer b.Close()
	var c cutting
	if !commit {
		var err error
		if c, err = s.cut(b, 0); err != nil {
			return fmt.Errorf("discard stage %q: %w", s.info.File, err)
		}
	}
	if err := s.endLocked(b, commit, c); err != nil {
		return fmt.Errorf("end stage %q: %w", s.info.File, err)
	}
	s.route.signal()
	return nil
}

func (s *Stage) endLocked(b *pebble.Batch, commit bool, c cutting) error {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.ended {
		return nil
	}
	s.ended = true
	if s.q.stages[s.file] == nil {
		return nil // nothing was ever put
	}
	delete(s.q.stages, s.file)
	if err := s.deleteHead(b); err != nil {
		return err
	}
	if !commit {
		s.cutLocked(c)
	}
	count := &s.route.count
	count.staged.sub(s.content.all())
	count.pending.add(s.content.messages)
	count.dead.add(s.content.dead)
	for _, e := range s.extents {
		s.route.dropExtentLocked(e, true)
	}
	// Not synced: if this batch is lost, the stage is handed back by the next
	// Open and committed then (or discarded: see Who syncs in doc.go).
	return s.q.applyLocked(b, s.route, false)
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
