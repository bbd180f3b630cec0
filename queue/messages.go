package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// State is what a message is when it can be listed.
type State uint8

// The states of messages that can be listed. Those of stages cannot: they belong
// to the one who writes them.
const (
	Pending State = iota + 1 // ready or leased
	Delayed
	Dead
	Partial
)

// kind is that of the rows of messages in this state.
func (s State) kind() byte {
	return [...]byte{Pending: kindMessage, Delayed: kindDelayed, Dead: kindDead, Partial: kindPartial}[s]
}

// Place says where a message lies in its route, for as long as it is in one
// State: its sequence number and, if it is delayed, when it is due, in
// nanoseconds since 1970. Places are ordered as messages are listed.
type Place struct {
	Due int64
	Seq uint64
}

// Entry is a message with its place.
type Entry struct {
	Place Place
	*Message
}

// pageSize and pageBytes are how many rows, and about how many bytes of them, an
// iteration reads before it lets go of the store.
const (
	pageSize  = 256
	pageBytes = 1 << 20
)

// row is a record as it was read.
type row struct {
	Entry
	bytes uint64
}

// Dead yields the dead letters of the route, Pending what is ready or leased,
// and Delayed what waits; see Entries.
func (r *Route) Dead() iter.Seq2[*Message, error]    { return messagesOf(r.Entries(Dead, Place{})) }
func (r *Route) Pending() iter.Seq2[*Message, error] { return messagesOf(r.Entries(Pending, Place{})) }
func (r *Route) Delayed() iter.Seq2[*Message, error] { return messagesOf(r.Entries(Delayed, Place{})) }

func messagesOf(entries iter.Seq2[Entry, error]) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for e, err := range entries {
			if !yield(e.Message, err) {
				return
			}
		}
	}
}

// Entries yields the messages in a state that lie behind a place; behind the
// zero Place are all. Their order is that in which they were stored, or, of
// delayed ones, that in which they are due. It reads in small pages and holds up
// nobody, so that what changes meanwhile may or may not be seen.
func (r *Route) Entries(state State, after Place) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		from := routeKey(state.kind(), r.id)
		if after != (Place{}) {
			from = append(r.key(state, after), 0)
		}
		for from != nil {
			page, next, err := r.readPage(state.kind(), from)
			if errors.Is(err, errDamaged) && r.q.awaitResume(context.Background()) == nil {
				continue // what is damaged is set aside; the others keep their keys
			}
			if err != nil {
				yield(Entry{}, fmt.Errorf("list route %q: %w", r.Name(), err))
				return
			}
			for _, row := range page {
				if !yield(row.Entry, nil) {
					return
				}
			}
			from = next
		}
	}
}

// Entry returns the message at a place.
//
// Errors: ErrNotFound, ErrFault, ErrClosed.
func (r *Route) Entry(state State, p Place) (*Message, error) {
	if err := r.q.begin(); err != nil {
		return nil, fmt.Errorf("message %d of route %q: %w", p.Seq, r.Name(), err)
	}
	defer r.q.end()
	row, err := r.rowAt(state, p)
	if err != nil {
		return nil, fmt.Errorf("message %d of route %q: %w", p.Seq, r.Name(), err)
	}
	return row.Message, nil
}

func (r *Route) rowAt(state State, p Place) (row, error) {
	key := r.key(state, p)
	page, _, err := r.pageAt(state.kind(), key, append(key, 0))
	if err == nil && len(page) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return row{}, err
	}
	return page[0], nil
}

// key is that of the row of a message.
func (r *Route) key(state State, p Place) []byte {
	if state == Delayed {
		return delayedKey(r.id, p.Due, p.Seq)
	}
	return seqKey(state.kind(), r.id, p.Seq)
}

func (r *Route) readPage(kind byte, from []byte) ([]row, []byte, error) {
	if err := r.q.begin(); err != nil {
		return nil, nil, err
	}
	defer r.q.end()
	return r.pageAt(kind, from, routeKey(kind, r.id+1))
}

// pageAt reads a page of rows between two keys, without those of stages. It
// returns the key at which the next page begins; nil at the end.
func (r *Route) pageAt(kind byte, from, to []byte) (page []row, next []byte, err error) {
	page, next, err = r.rowsAt(kind, from, to)
	if kind == kindDelayed {
		return page, next, err
	}
	return r.withoutStaged(page), next, err
}

// rowsAt is pageAt with those of stages.
func (r *Route) rowsAt(kind byte, from, to []byte) (page []row, next []byte, err error) {
	n, size := 0, 0
	err = r.q.eachRow(from, to, func(key, value []byte) error {
		if n == pageSize || size >= pageBytes {
			next = append([]byte(nil), key...)
			return errStop
		}
		n++
		size += len(value)
		page = append(page, decodeRow(key, value))
		return nil
	})
	return page, next, err
}

func decodeRow(key, value []byte) row {
	m, err := decodeRecord(value)
	if err != nil {
		m = corruptMessage(value, err)
	}
	m.Partial = key[0] == kindPartial
	p := Place{Seq: lastUint64(key)}
	if key[0] == kindDelayed {
		p.Due = dueOf(key)
	}
	return row{Entry{p, m}, uint64(len(value))}
}

// withoutStaged leaves out what belongs to a stage.
func (r *Route) withoutStaged(page []row) []row {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	kept := page[:0]
	for _, row := range page {
		if !r.isStagedLocked(row.Place.Seq) {
			kept = append(kept, row)
		}
	}
	return kept
}

// isStagedLocked reports whether a number belongs to what is not ready yet.
func (r *Route) isStagedLocked(seq uint64) bool {
	i := r.searchStagedLocked(seq + 1)
	return i > 0 && seq < r.staged[i-1].hi
}
