package queue

import (
	"fmt"
	"slices"
)

// Purge removes the message at a place; see Replace.
func (r *Route) Purge(state State, p Place) error {
	return r.Replace(state, p, nil)
}

// Replace removes the message at a place and appends others to the route, which
// are ready then, in one batch that is synced: a dead letter that is to go again,
// say, or what a partial file holds. They are charged to the user to whom the
// message was, and no limit holds them up.
//
// Errors: ErrNotFound, ErrLeased, ErrFault, ErrClosed.
func (r *Route) Replace(state State, p Place, with []Message) error {
	n, err := r.replace(state, func() ([]row, error) {
		found, err := r.rowAt(state, p)
		return []row{found}, err
	}, func(*Message) ([]Message, bool) { return with, true })
	if err == nil && n == 0 {
		err = ErrLeased
	}
	if err != nil {
		return fmt.Errorf("replace message %d of route %q: %w", p.Seq, r.Name(), err)
	}
	return nil
}

// Redrive makes dead letters ready again, at the end of the route and with their
// IDs, and returns how many. revise is asked for each in the order in which they
// were stored: it may change the message (decode its body anew, for one that was
// never a message) and reports whether it is to go. Reason and Attempts are
// reset.
//
// It goes in batches that are synced; after an error what was done is done.
func (r *Route) Redrive(revise func(*Message) bool) (int, error) {
	return r.ReplaceAll(Dead, func(m *Message) ([]Message, bool) {
		if !revise(m) {
			return nil, false
		}
		m.Reason, m.Attempts = "", 0
		return []Message{*m}, true
	})
}

// PurgeAll removes the messages in a state that match, and returns how many.
// What is leased at the moment stays. It goes in batches as Redrive does.
func (r *Route) PurgeAll(state State, match func(*Message) bool) (int, error) {
	return r.ReplaceAll(state, func(m *Message) ([]Message, bool) { return nil, match(m) })
}

// ReplaceAll asks about each message in a state, in the order in which Entries
// lists them, and returns how many were removed: by says whether a message is to
// go and what takes its place, as in Replace. It must be quick, since nothing is
// leased meanwhile. What is leased at the moment stays.
//
// It goes in batches of a page that are synced; after an error what was done is
// done. It asks about as many messages as there were at the beginning, so that it
// ends even if what it removes comes back.
//
// Errors: ErrFault, ErrClosed.
func (r *Route) ReplaceAll(state State, by func(*Message) ([]Message, bool)) (int, error) {
	r.q.mu.Lock()
	left := r.count.of(state.kind()).count
	r.q.mu.Unlock()
	total := 0
	for from := routeKey(state.kind(), r.id); from != nil && left > 0; {
		var page []row
		var next []byte
		n, err := r.replace(state, func() (_ []row, err error) {
			page, next, err = r.pageAt(state.kind(), from, routeKey(state.kind(), r.id+1))
			return page, err
		}, by)
		total += n
		if err != nil {
			return total, fmt.Errorf("replace messages of route %q: %w", r.Name(), err)
		}
		left -= min(left, uint64(len(page)))
		from = next
	}
	return total, nil
}

// substitute gives what takes the place of a message, and reports whether the
// message is to go.
type substitute func(*Message) ([]Message, bool)

// replace removes rows and puts in what takes their place, in a synced batch,
// and returns how many rows it were.
func (r *Route) replace(state State, read func() ([]row, error), by substitute) (int, error) {
	if err := r.q.begin(); err != nil {
		return 0, err
	}
	defer r.q.end()
	// Only one at a time may remove what it has read.
	r.leasing.Lock()
	defer r.leasing.Unlock()
	// What is leased now may be settled before the batch is made, which must not
	// remove it once more. Nothing else is leased meanwhile.
	leased := r.leasedNow()
	// What was settled before still stands there until that is applied.
	if err := r.q.engine.barrier(state == Pending); err != nil {
		return 0, err
	}
	page, err := read()
	if err != nil {
		return 0, err
	}
	rs := chosen(page, by)
	if state == Pending {
		rs = slices.DeleteFunc(rs, func(old replacement) bool { return leased[old.Place.Seq] })
	}
	n, e, w, err := r.submitReplace(state, rs)
	if err = r.q.await(w, err); err != nil {
		return 0, err
	}
	if e != nil {
		r.ready(e)
	}
	return n, nil
}

// replacement is a row that is to go and what takes its place.
type replacement struct {
	row
	uid  uint32 // is charged for it, whatever has become of the message
	with []value
}

func chosen(page []row, by substitute) []replacement {
	var rs []replacement
	for _, row := range page {
		uid := row.UID
		with, ok := by(row.Message)
		if !ok {
			continue
		}
		for i := range with {
			with[i].UID = uid
		}
		rs = append(rs, replacement{row, uid, encodeAll(with)})
	}
	return rs
}

func (r *Route) submitReplace(state State, rs []replacement) (n int, e *extent, w *write, err error) {
	b := r.q.engine.db.NewBatch()
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	var values []value
	for _, old := range rs {
		r.count.of(state.kind()).sub(tally{1, old.bytes})
		r.q.chargeLocked(old.uid, sizeOf(old.with), tally{1, old.bytes})
		if err := b.Delete(r.key(state, old.Place), nil); err != nil {
			return 0, nil, nil, err
		}
		values = append(values, old.with...)
	}
	if len(rs) == 0 {
		return 0, nil, nil, nil
	}
	if len(values) > 0 {
		if e, err = r.appendLocked(b, values); err != nil {
			return 0, nil, nil, err
		}
	}
	return len(rs), e, r.q.submitLocked(b, true, r), nil
}
