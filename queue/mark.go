package queue

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Mark says how far a bundle of messages that another store has exported is in
// this one. It is stored together with the messages, so that a bundle that comes
// once more is recognised, and one that was cut goes on where it was.
type Mark struct {
	Bundle FileID

	// Lines is how many lines of the bundle are stored, and Sum a checksum of
	// them.
	Lines uint64
	Sum   [32]byte

	// At is when the last of them was stored.
	At time.Time
}

// maxMarks is how many bundles are remembered: of more, the last ones.
const maxMarks = 4096

// Tags of the fields of a mark.
const (
	tagMarkLines = 1
	tagMarkSum   = 2
	tagMarkAt    = 3 // nanoseconds since 1970
)

func markKey(bundle FileID) []byte { return append([]byte{kindMark}, bundle[:]...) }

func encodeMark(m Mark) []byte {
	w := newFieldWriter(64)
	w.uint(tagMarkLines, m.Lines)
	w.bytes(tagMarkSum, m.Sum[:])
	w.uint(tagMarkAt, uint64(m.At.UnixNano()))
	return w.finish()
}

func decodeMark(bundle FileID, value []byte) (Mark, error) {
	m := Mark{Bundle: bundle}
	err := eachField(value, func(tag uint64, content []byte) (err error) {
		switch tag {
		case tagMarkLines:
			m.Lines, err = fieldUint(content)
		case tagMarkSum:
			copy(m.Sum[:], content)
		case tagMarkAt:
			var at uint64
			at, err = fieldUint(content)
			m.At = time.Unix(0, int64(at))
		}
		return err
	})
	return m, err
}

// Mark returns the mark of a bundle; one without lines if it is not known, or not
// any more.
func (q *Queue) Mark(bundle FileID) (Mark, error) {
	if err := q.begin(); err != nil {
		return Mark{}, fmt.Errorf("look for bundle %s: %w", bundle, err)
	}
	defer q.end()
	m := Mark{Bundle: bundle}
	key := markKey(bundle)
	err := q.eachRow(key, append(key, 0), func(_, value []byte) (err error) {
		if m, err = decodeMark(bundle, value); err != nil {
			m = Mark{Bundle: bundle} // it is imported once more, with the same IDs
		}
		return nil
	})
	if err != nil {
		return Mark{}, fmt.Errorf("look for bundle %s: %w", bundle, err)
	}
	return m, nil
}

// AppendMarked is Append, with the mark of the bundle that the messages are from:
// all is stored, or nothing. A route that is DropNewest refuses what it would drop, as the
// store that they are from keeps them then.
func (r *Route) AppendMarked(ms []Message, m Mark) error {
	if err := r.q.begin(); err != nil {
		return fmt.Errorf("append to route %q: %w", r.Name(), err)
	}
	defer r.q.end()
	values := encodeAll(ms)
	sizes := sizeByUser(ms, values)
	if r.wouldDropNewest(sumOf(sizes)) {
		return fmt.Errorf("append to route %q: %w", r.Name(), ErrFull)
	}
	if err := r.admitAll(sizes); err != nil {
		return fmt.Errorf("append to route %q: %w", r.Name(), err)
	}
	b := r.q.engine.db.NewBatch()
	if err := r.q.setMark(b, m); err != nil {
		return fmt.Errorf("append to route %q: %w", r.Name(), err)
	}
	e, w, err := r.submitAppend(b, values, sizes)
	if err = r.q.await(w, err); err != nil {
		return fmt.Errorf("append to route %q: %w", r.Name(), err)
	}
	r.ready(e)
	return nil
}

func (r *Route) wouldDropNewest(size tally) bool {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	return r.dropsLocked(size)
}

// setMark sets a mark, and removes the oldest if there are too many.
func (q *Queue) setMark(b *pebble.Batch, m Mark) error {
	count, oldest, known := 0, Mark{}, false
	err := q.eachRow([]byte{kindMark}, []byte{kindMark + 1}, func(key, value []byte) error {
		bundle := FileID(key[1:])
		old, err := decodeMark(bundle, value)
		if err != nil || count == 0 || old.At.Before(oldest.At) {
			oldest = old
		}
		known = known || bundle == m.Bundle
		count++
		return nil
	})
	if err != nil {
		return err
	}
	if !known && count >= maxMarks {
		if err := b.Delete(markKey(oldest.Bundle), nil); err != nil {
			return err
		}
	}
	return b.Set(markKey(m.Bundle), encodeMark(m), nil)
}
