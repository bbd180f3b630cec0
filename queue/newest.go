package queue

import (
	"math"
	"slices"
	"strings"
)

// The order of a route that is NewestFirst: the file that was put last goes first,
// and the messages of a file go in their order. A message that becomes ready goes
// before all that were put before it, so that it waits for what is in flight and
// for no backlog; the backlog drains from its young end to its old one.
//
// Which messages are of one file is told by their IDs, as far as their numbers
// follow each other: a file that was put in several parts, with others in between,
// is as many files. Of more than runMax messages of a file that wait, those that
// are handed out first are about the last runMax, in their order: none looks
// through a file of a million lines for its beginning.
//
// It rests on behind, which has all that is ready, while the cursor is always at the
// end. So nothing is scanned twice: what was leased is not in behind, and a read
// begins at the top of what is. After a restart behind is all from the head on;
// what has drained at the young end was removed by range deletions by then, but for
// the last sweepRows.

// runMax is how many messages are read beyond those that are wanted, to find the
// beginning of a file.
const runMax = 256

// planNewestLocked takes numbers into reading: those of the file whose turn it is,
// in ascending order, or, where something is newer, numbers to look through from
// their end.
func (r *Route) planNewestLocked(max uint64) (wanted spans, down bool) {
	r.advanceLocked(math.MaxUint64, &r.behind)
	if n, m := len(r.turn), len(r.behind); n > 0 && (m == 0 || r.behind[m-1].hi < r.turn[n-1].hi) {
		return r.turn.take(max), false
	}
	r.endTurnLocked()
	return r.behind.takeTop(max + runMax), true
}

// endTurnLocked has what goes next looked for anew, since something is newer, or is
// ready again that belongs before it.
func (r *Route) endTurnLocked() {
	for _, sp := range r.turn {
		r.behind.add(sp)
	}
	r.turn = nil
}

// newest are messages that were looked for from the end.
type newest struct {
	rows  []row // the newest first
	size  uint64
	left  spans // was not looked through
	ended bool
}

// readNewest reads the newest messages with the given numbers. It leaves what it has
// not looked through; the rest of the file to which the last message belongs goes
// next.
func (r *Route) readNewest(wanted spans, max uint64) (t taken, err error) {
	var n newest
	for i := len(wanted) - 1; i >= 0; i-- {
		sp := wanted[i]
		if n.ended {
			n.left.add(sp)
			continue
		}
		lo, hi := seqKey(kindMessage, r.id, sp.lo), seqKey(kindMessage, r.id, sp.hi)
		err := r.q.eachRowDown(lo, hi, func(key, value []byte) error {
			found := decodeRow(key, value)
			if n.ended = n.isEnough(max, found); n.ended {
				n.left.add(span{sp.lo, found.Place.Seq + 1})
				return errStop
			}
			n.rows = append(n.rows, found)
			n.size += found.bytes
			return nil
		})
		if err != nil {
			return t, err
		}
	}
	for i, row := range fileOrder(n.rows) {
		if uint64(i) < max {
			t.leases = append(t.leases, r.leaseOf(row))
		} else {
			t.turn.add(span{row.Place.Seq, row.Place.Seq + 1})
		}
	}
	t.left = n.left
	return t, nil
}

// isEnough reports whether a message is not needed any more: there are max, and it
// is of another file than the last of them.
func (n *newest) isEnough(max uint64, next row) bool {
	have := uint64(len(n.rows))
	switch {
	case have == 0:
		return false
	case n.size >= leaseBytes, have >= max+runMax:
		return true
	}
	return have >= max && fileOf(n.rows[have-1].ID) != fileOf(next.ID)
}

// fileOrder turns round the messages of each file in a list that has the newest
// first.
func fileOrder(rows []row) []row {
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && fileOf(rows[j].ID) == fileOf(rows[i].ID) {
			j++
		}
		slices.Reverse(rows[i:j])
		i = j
	}
	return rows
}

// fileOf is the part of an ID that the messages of a file, and what follows from
// them, have in common.
func fileOf(id ID) ID {
	if i := strings.IndexByte(string(id), '-'); i == 2*len(FileID{}) {
		return id[:i]
	}
	return id
}

// sweepNewestLocked lists what has drained that no head will pass for a long time,
// once it is much: numbers that are never used again. A few that lie alone are
// deleted well enough, each by itself.
func (r *Route) sweepNewestLocked() spans {
	if r.gone.size() < sweepRows {
		return nil
	}
	gone := slices.DeleteFunc(r.gone, func(sp span) bool { return sp.hi-sp.lo < 16 })
	r.gone = nil
	return gone
}

// goneLocked notes that a message has gone for good, its number with it.
func (r *Route) goneLocked(seq uint64) {
	if r.opts.Order == NewestFirst {
		r.gone.add(span{seq, seq + 1})
	}
}
