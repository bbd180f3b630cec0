package queue

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// hint is the row of a subject, in the envelope of fields.go: the number of the last
// message about it that became ready, and when that is due, if it is delayed. Nothing
// rests on it: it is believed as far as the message's own row says the same.
type hint struct {
	seq uint64
	due int64 // nanoseconds since 1970; 0 if the message is not delayed
}

// The tags of a hint.
const (
	tagHintSeq = 1
	tagHintDue = 2
)

// subjectKey stands for a subject and the user who writes about it.
type subjectKey [16]byte

func keyOfSubject(uid uint32, subject string) (k subjectKey) {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint32(nil, uid), subject...))
	copy(k[:], sum[:])
	return k
}

func hintKey(route uint32, about subjectKey) []byte {
	return append(routeKey(kindLatest, route), about[:]...)
}

func (h hint) encode() []byte {
	w := newFieldWriter(24)
	w.uint(tagHintSeq, h.seq)
	w.uint(tagHintDue, uint64(h.due))
	return w.finish()
}

func decodeHint(value []byte) (h hint, err error) {
	err = eachField(value, func(tag uint64, content []byte) error {
		v, err := fieldUint(content)
		switch tag {
		case tagHintSeq:
			h.seq = v
		case tagHintDue:
			h.due = int64(v)
		}
		return err
	})
	return h, err
}

// subjected is a message about something, and where it lies.
type subjected struct {
	about    subjectKey
	hint     hint
	uid      uint32
	ingested uint64 // nanoseconds since 1970
	bytes    uint64 // of the record
	fresh    bool   // it becomes ready only now
}

// size counts the message.
func (m *subjected) size() tally { return tally{1, m.bytes} }

// follows reports whether a message is later than another one about the same: it has a
// larger number, and was not stored before. What an operator has go again, or brings
// from elsewhere, has a new number and is as old as it was.
func (m *subjected) follows(other *subjected) bool {
	return m.hint.seq > other.hint.seq && m.ingested >= other.ingested
}

// subjectedOf reads of a record what it takes to tell what it is about; ok is false if it
// is about nothing, or cannot be read.
func subjectedOf(at hint, record []byte) (m subjected, ok bool) {
	var subject string
	m.hint, m.bytes = at, uint64(len(record))
	err := eachField(record, func(tag uint64, content []byte) (err error) {
		var v uint64
		switch tag {
		case tagSubject:
			subject = string(content)
		case tagUID:
			v, err = fieldUint(content)
			m.uid = uint32(v)
		case tagIngested:
			m.ingested, err = fieldUint(content)
		}
		return err
	})
	if err != nil || subject == "" {
		return m, false
	}
	m.about = keyOfSubject(m.uid, subject)
	return m, true
}

// get calls f with the value of a row, if it is there.
func (q *Queue) get(key []byte, f func(value []byte)) error {
	return q.engine.condemn(guarded(func() error {
		value, closer, err := q.engine.db.Get(key)
		if errors.Is(err, pebble.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		f(value)
		return closer.Close()
	}))
}

// hintOf reads the row of a subject.
func (r *Route) hintOf(about subjectKey) (h hint, found bool, err error) {
	err = r.q.get(hintKey(r.id, about), func(value []byte) {
		var bad error
		h, bad = decodeHint(value)
		found = bad == nil && h.seq > 0
	})
	return h, found, err
}

// standing reads the message of which a hint tells, and reports whether it is there:
// ready, leased or delayed, and about the same.
func (r *Route) standing(about subjectKey, h hint) (m subjected, found bool, err error) {
	look := func(at hint, key []byte) {
		if err == nil && !found {
			err = r.q.get(key, func(value []byte) {
				m, found = subjectedOf(at, value)
				found = found && m.about == about
			})
		}
	}
	if !r.isStaged(h.seq) {
		look(hint{seq: h.seq}, seqKey(kindMessage, r.id, h.seq))
	}
	if h.due != 0 {
		look(h, delayedKey(r.id, h.due, h.seq))
	}
	return m, found, err
}

// isStaged reports whether a number belongs to a stage.
func (r *Route) isStaged(seq uint64) bool {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	return r.isStagedLocked(seq)
}
