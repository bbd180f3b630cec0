package ingest

import (
	"crypto/sha256"
	"maps"
	"slices"
)

// Seen remembers the records of a file that python has written: sr3 writes the
// same ones several times, byte for byte, when it fails again and again. One
// belongs to one file and is used by one goroutine at a time.
//
// A line that is decoded again is no repeat of itself. The zero value is the
// memory of a new file. It holds at most maxSeen records, and gives up the older half
// when it is full, as a file may stay open and grow for ever.
type Seen struct {
	lines map[[16]byte]int // the first line of each record
}

// Forget forgets the lines from a number of lines on, since they have changed.
func (s *Seen) Forget(lines int) {
	for sum, line := range s.lines {
		if line >= lines {
			delete(s.lines, sum)
		}
	}
}

// repeats reports whether text stood on an earlier line than the one with so many
// lines before it. A line that is whole is remembered.
func (s *Seen) repeats(text []byte, before int, whole bool) bool {
	if s == nil {
		return false
	}
	hash := sha256.Sum256(text)
	sum := [16]byte(hash[:])
	first, ok := s.lines[sum]
	if ok && first < before {
		return true
	}
	if whole {
		if s.lines == nil {
			s.lines = map[[16]byte]int{}
		}
		if len(s.lines) >= maxSeen {
			s.forgetOlder()
		}
		s.lines[sum] = before
	}
	return false
}

// maxSeen is how many records are remembered, some 50 bytes each: those of a file
// of 64 MiB.
const maxSeen = 1 << 18

// forgetOlder forgets the half that came first.
func (s *Seen) forgetOlder() {
	lines := slices.Sorted(maps.Values(s.lines))
	middle := lines[len(lines)/2]
	maps.DeleteFunc(s.lines, func(_ [16]byte, line int) bool { return line < middle })
}
