package queue

import "slices"

// span is a range of sequence numbers, hi excluded.
type span struct{ lo, hi uint64 }

// spans is a set of sequence numbers as sorted spans that neither overlap nor
// touch.
type spans []span

// add puts the numbers of s into the set.
func (ss *spans) add(s span) {
	if s.lo >= s.hi {
		return
	}
	i, _ := slices.BinarySearchFunc(*ss, s.lo, func(e span, lo uint64) int {
		if e.hi < lo {
			return -1
		}
		return 1
	})
	j := i
	for ; j < len(*ss) && (*ss)[j].lo <= s.hi; j++ {
		s.lo = min(s.lo, (*ss)[j].lo)
		s.hi = max(s.hi, (*ss)[j].hi)
	}
	*ss = slices.Replace(*ss, i, j, s)
}

// take removes up to n numbers, smallest first, and returns them.
func (ss *spans) take(n uint64) spans {
	var out spans
	i := 0
	for ; i < len(*ss) && n > 0; i++ {
		s := &(*ss)[i]
		if size := s.hi - s.lo; size > n {
			out = append(out, span{s.lo, s.lo + n})
			s.lo += n
			n = 0
			break
		} else {
			out = append(out, *s)
			n -= size
		}
	}
	*ss = slices.Delete(*ss, 0, i)
	return out
}

// takeTop removes whole spans, the last first, until there are n numbers or more, and
// returns them.
func (ss *spans) takeTop(n uint64) spans {
	i := len(*ss)
	for ; i > 0 && n > 0; i-- {
		s := (*ss)[i-1]
		n -= min(n, s.hi-s.lo)
	}
	out := slices.Clone((*ss)[i:])
	*ss = (*ss)[:i]
	return out
}

// drop removes one number.
func (ss *spans) drop(seq uint64) {
	i, _ := slices.BinarySearchFunc(*ss, seq, func(e span, seq uint64) int {
		if e.hi <= seq {
			return -1
		}
		return 1
	})
	if i == len(*ss) || (*ss)[i].lo > seq {
		return
	}
	s := (*ss)[i]
	*ss = slices.Delete(*ss, i, i+1)
	ss.add(span{s.lo, seq})
	ss.add(span{seq + 1, s.hi})
}

// size is how many numbers there are.
func (ss spans) size() (n uint64) {
	for _, s := range ss {
		n += s.hi - s.lo
	}
	return n
}
