package queue

import (
	"iter"
)

// pageSize is how many rows an iteration reads before it lets go of the store.
const pageSize = 256

// Dead yields the dead letters of the route in the order in which they were
// stored. Pending yields what is ready or leased. Both read in small pages and
// hold up nobody, so that what changes meanwhile may or may not be seen.
func (r *Route) Dead() iter.Seq2[*Message, error] { return r.messages(kindDead) }

// Pending yields the messages that are ready or leased; see Dead.
func (r *Route) Pending() iter.Seq2[*Message, error] { return r.messages(kindMessage) }

func (r *Route) messages(kind byte) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for from := uint64(0); ; {
			page, next, err := r.page(kind, from)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
			}
			if next == from {
				return
			}
			from = next
		}
	}
}

// page reads a page of rows from the given number on. It returns where the next
// page begins, which is from itself at the end.
func (r *Route) page(kind byte, from uint64) ([]*Message, uint64, error) {
	if err := r.q.begin(); err != nil {
		return nil, from, err
	}
	defer r.q.end()
	next := from
	var seqs []uint64
	var page []*Message
	lo, hi := seqKey(kind, r.id, from), routeKey(kind, r.id+1)
	err := r.q.eachRow(lo, hi, func(key, value []byte) error {
		m, err := decodeRecord(value)
		if err != nil {
			m = corruptMessage(value, err)
		}
		page = append(page, m)
		seqs = append(seqs, lastUint64(key))
		next = lastUint64(key) + 1
		if len(page) == pageSize {
			return errStop
		}
		return nil
	})
	return r.withoutStaged(page, seqs), next, err
}

// withoutStaged leaves out what belongs to a stage.
func (r *Route) withoutStaged(page []*Message, seqs []uint64) []*Message {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	kept := page[:0]
	for i, m := range page {
		j := r.searchStagedLocked(seqs[i] + 1)
		if j == 0 || r.staged[j-1].hi <= seqs[i] {
			kept = append(kept, m)
		}
	}
	return kept
}
