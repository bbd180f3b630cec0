package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"
)

// tagChunk is the one field of a chunk row: first number and count, uvarints.
const tagChunk = 1

// cutting is the change that a Put makes to a stage when it keeps only the
// first entries.
type cutting struct {
	keep    int
	removed content
}

// cutPoints yields, from the last to the first, the indexes of the extents that
// have entries behind the first keep, with the first number to go.
func (s *Stage) cutPoints(keep int) iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		drop := uint64(s.entries - keep)
		for i := len(s.extents) - 1; i >= 0 && drop > 0; i-- {
			e := s.extents[i]
			n := min(drop, e.hi-e.lo)
			drop -= n
			if !yield(i, e.hi-n) {
				return
			}
		}
	}
}

// cut adds to b the deletion of all entries behind the first keep. Only the
// owner of the stage changes its rows, so that no lock is needed to read them.
func (s *Stage) cut(b *pebble.Batch, keep int) (cutting, error) {
	c := cutting{keep: keep}
	if keep < 0 || keep > s.entries {
		return c, fmt.Errorf("keep %d of %d entries", keep, s.entries)
	}
	for i, from := range s.cutPoints(keep) {
		e := s.extents[i]
		for _, kind := range contentKinds {
			if err := s.cutRows(b, kind, span{from, e.hi}, &c.removed); err != nil {
				return c, err
			}
		}
		if err := s.cutChunk(b, uint32(i), span{e.lo, from}); err != nil {
			return c, err
		}
	}
	return c, nil
}

// cutRows adds to b the deletion of the rows of sp, and counts them.
func (s *Stage) cutRows(b *pebble.Batch, kind byte, sp span, removed *content) error {
	lo, hi := seqKey(kind, s.route.id, sp.lo), seqKey(kind, s.route.id, sp.hi)
	return s.q.eachRow(lo, hi, func(key, value []byte) error {
		removed.addRow(kind, value)
		return b.Delete(key, nil)
	})
}

// cutChunk rewrites the row of a chunk that keeps only the numbers of left.
func (s *Stage) cutChunk(b *pebble.Batch, chunk uint32, left span) error {
	if left.lo == left.hi {
		return b.Delete(chunkKey(s.file, chunk), nil)
	}
	return b.Set(chunkKey(s.file, chunk), encodeChunk(left), nil)
}

// cutLocked makes the change of c to the tables in memory. Until the batch is
// applied the rows are still there, so that the numbers are those of an extent
// which Lease waits for, see gone.
func (s *Stage) cutLocked(c cutting) {
	for i, from := range s.cutPoints(c.keep) {
		e := s.extents[i]
		going := &extent{span: span{from, e.hi}, since: e.since}
		if from == e.lo {
			s.route.dropExtentLocked(e, false)
			s.extents = s.extents[:i]
		} else {
			e.hi = from
		}
		if going.hi > s.route.cursor {
			s.route.addExtentLocked(going)
			s.going = append(s.going, going)
		}
	}
	s.entries = c.keep
	s.content.sub(c.removed)
	s.route.count.staged.sub(c.removed.all())
	s.q.chargeLocked(s.info.UID, tally{}, c.removed.all())
}

// gone lets Lease pass over the numbers that a cut has removed. After a fault
// they stay until the tables are made anew: perhaps the rows are still there.
func (s *Stage) gone(err error) error {
	if len(s.going) == 0 || errors.Is(err, ErrFault) {
		return err
	}
	s.q.mu.Lock()
	for _, e := range s.going {
		s.route.dropExtentLocked(e, false)
	}
	s.going = nil
	s.q.mu.Unlock()
	s.route.signal()
	return err
}

func encodeChunk(sp span) []byte {
	row := binary.AppendUvarint(nil, sp.lo)
	row = binary.AppendUvarint(row, sp.hi-sp.lo)
	w := newFieldWriter(len(row))
	w.bytes(tagChunk, row)
	return w.finish()
}

func decodeChunk(value []byte) (span, error) {
	var sp span
	err := eachField(value, func(tag uint64, content []byte) error {
		if tag != tagChunk {
			return nil
		}
		lo, n := binary.Uvarint(content)
		if n <= 0 {
			return fmt.Errorf("%w: chunk", ErrCorrupt)
		}
		size, err := fieldUint(content[n:])
		sp = span{lo, lo + size}
		return err
	})
	return sp, err
}
