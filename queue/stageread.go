package queue

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// Entries yields what the stage holds, in order. It reads a few at a time, since
// those of a held file are pieces of its content.
func (s *Stage) Entries() iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for _, sp := range s.spans() {
			for lo := sp.lo; lo < sp.hi; lo += stagePage {
				rows, err := s.rows(span{lo, min(lo+stagePage, sp.hi)})
				if err != nil {
					yield(nil, fmt.Errorf("stage %q: %w", s.info.File, err))
					return
				}
				for _, row := range rows {
					if !yield(row.Message, nil) {
						return
					}
				}
			}
		}
	}
}

// stagePage is how many entries are read at a time.
const stagePage = 16

// spans lists the numbers of the stage. Only its owner changes them.
func (s *Stage) spans() []span {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	list := make([]span, len(s.extents))
	for i, e := range s.extents {
		list[i] = e.span
	}
	return list
}

// rows reads the entries with the given numbers.
func (s *Stage) rows(sp span) ([]row, error) {
	if err := s.q.begin(); err != nil {
		return nil, err
	}
	defer s.q.end()
	var rows []row
	for _, kind := range contentKinds {
		lo, hi := seqKey(kind, s.route.id, sp.lo), seqKey(kind, s.route.id, sp.hi)
		err := s.q.eachRow(lo, hi, func(key, value []byte) error {
			rows = append(rows, decodeRow(key, value))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.Place.Seq, b.Place.Seq) })
	return rows, nil
}
