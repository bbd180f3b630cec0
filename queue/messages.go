package queue

import (
	"context"
	"errors"
	"iter"
)

// pageSize is how many rows an iteration reads before it lets go of the store.
const pageSize = 256

// errSkip leaves a row as it is.
var errSkip = errors.New("skip")

// row is a record as it was read.
type row struct {
	seq     uint64
	bytes   uint64
	message *Message
}

// Dead yields the dead letters of the route in the order in which they were
// stored, Pending what is ready or leased, and Delayed what waits, in the order
// in which it is due. All read in small pages and hold up nobody, so that what
// changes meanwhile may or may not be seen.
func (r *Route) Dead() iter.Seq2[*Message, error]    { return r.messages(kindDead) }
func (r *Route) Pending() iter.Seq2[*Message, error] { return r.messages(kindMessage) }
func (r *Route) Delayed() iter.Seq2[*Message, error] { return r.messages(kindDelayed) }

func (r *Route) messages(kind byte) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for from := routeKey(kind, r.id); from != nil; {
			page, next, err := r.readPage(kind, from)
			if errors.Is(err, errDamaged) && r.q.awaitResume(context.Background()) == nil {
				continue // what is damaged is set aside; the others keep their keys
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, row := range page {
				if !yield(row.message, nil) {
					return
				}
			}
			from = next
		}
	}
}

func (r *Route) readPage(kind byte, from []byte) ([]row, []byte, error) {
	if err := r.q.begin(); err != nil {
		return nil, nil, err
	}
	defer r.q.end()
	return r.pageAt(kind, from)
}

// page reads a page of rows with numbers from the given one on. It returns
// where the next page begins, which is from itself at the end.
func (r *Route) page(kind byte, from uint64) ([]row, uint64, error) {
	page, next, err := r.pageAt(kind, seqKey(kind, r.id, from))
	if err != nil || next == nil {
		return page, from, err
	}
	return page, lastUint64(next), nil
}

// pageAt reads a page of rows from a key on, without those of stages. It returns
// the key at which the next page begins; nil at the end.
func (r *Route) pageAt(kind byte, from []byte) (page []row, next []byte, err error) {
	n := 0
	err = r.q.eachRow(from, routeKey(kind, r.id+1), func(key, value []byte) error {
		if n++; n > pageSize {
			next = append([]byte(nil), key...)
			return errStop
		}
		m, err := decodeRecord(value)
		if err != nil {
			m = corruptMessage(value, err)
		}
		page = append(page, row{lastUint64(key), uint64(len(value)), m})
		return nil
	})
	if kind == kindDelayed {
		return page, next, err
	}
	return r.withoutStaged(page), next, err
}

// withoutStaged leaves out what belongs to a stage.
func (r *Route) withoutStaged(page []row) []row {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	kept := page[:0]
	for _, row := range page {
		i := r.searchStagedLocked(row.seq + 1)
		if i == 0 || r.staged[i-1].hi <= row.seq {
			kept = append(kept, row)
		}
	}
	return kept
}
