package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A route that is full refuses what comes, or drops messages, each of which is
// counted in the batch that removes it:
//
//   - DropOldest makes room before something is stored: the oldest messages that are
//     ready go, not those that are leased or delayed, nor dead letters, partial files
//     and what is staged. That is a batch before the Put or Append: a crash between
//     the two leaves room that nobody has used, and the order of the log never has
//     the new without the loss of the old. If all that may go is too little, nothing
//     goes and the writer is refused.
//   - DropNewest takes the file, as its writer sees it, and drops it when it would
//     become ready. What is staged may therefore be over the limit, by stagedPart.
//
// What follows a message that has left another route comes in any case: all that may go
// does if it must, and of what there is no room for the first fits. It takes no more of the
// store than its parents have left.
//
// What is stored already when the limits shrink stays until something comes.

// stagedPart is how much of the limits of a route that is DropNewest may be staged
// beyond them, but at least stagedBytes and stagedMessages.
const (
	stagedPart     = 4
	stagedBytes    = 16 << 20
	stagedMessages = 1024
)

// limitsLocked are how many bytes and messages the route may hold; of messages 0 is
// without a limit.
func (r *Route) limitsLocked() (bytes, messages uint64) {
	o, l := &r.opts, &r.q.limits
	bytes, messages = uint64(float64(l.Bytes)*o.Share), uint64(float64(l.Messages)*o.Share)
	if l.Messages > 0 {
		messages = max(messages, 1)
	}
	if o.Bytes != 0 {
		bytes = min(bytes, o.Bytes)
	}
	if o.Messages != 0 && (messages == 0 || o.Messages < messages) {
		messages = o.Messages
	}
	return bytes, messages
}

// demand is what somebody wants to store.
type demand struct {
	more tally

	// leaves is what leaves another route in the same batch, and anyway that it comes
	// even where there is no room: what follows a message that is gone.
	leaves tally
	anyway bool
}

// excessLocked is how much has to go so that more fits into the route and the store.
func (r *Route) excessLocked(d demand) tally {
	bytes, messages := r.limitsLocked()
	have, more := r.count.all(), d.more
	excess := tally{beyond(have.count, more.count, messages), beyond(have.bytes, more.bytes, bytes)}
	stored, l := r.q.stored, &r.q.limits
	stored.sub(d.leaves)
	excess.count = max(excess.count, beyond(stored.count, more.count, l.Messages))
	excess.bytes = max(excess.bytes, beyond(stored.bytes, more.bytes, l.Bytes))
	return excess
}

// beyond is by how much is too much what there is and what comes, under a limit that
// lets something in as long as it is not reached; 0 is none.
func beyond(have, more, limit uint64) uint64 {
	more = max(more, 1)
	if limit == 0 || have+more <= limit {
		return 0
	}
	return have + more - limit
}

// droppableLocked is what DropOldest may drop.
func (r *Route) droppableLocked() tally {
	t := r.count.pending
	for _, l := range r.leased {
		if !l.settled {
			t.sub(tally{1, l.bytes})
		}
	}
	return t
}

// judgeLocked says what the route's own limits and its way to keep them make of the
// answer of the store, for a user who wants to store more.
//
// In a route that is DropOldest it is enough that room can be made. Who has made some may
// find that others have filled it, which must not be his error: for a moment they are over
// the limit together, by what they put, and the next one makes room for all.
func (r *Route) judgeLocked(more tally, fromStore error) error {
	excess := r.excessLocked(demand{more: more})
	switch {
	case fromStore != nil && !isLimit(fromStore):
		return fromStore
	case r.opts.OnFull == Reject && fromStore != nil:
		return fromStore
	case excess == (tally{}):
		return nil
	case r.opts.OnFull == DropNewest && r.maySpillLocked(more):
		return nil
	case r.opts.OnFull == DropOldest:
		may := r.droppableLocked()
		if may.count >= excess.count && may.bytes >= excess.bytes {
			return nil
		}
	}
	all := r.count.all()
	return fmt.Errorf("%w: route %q has %d messages of %d bytes", ErrFull, r.Name(), all.count, all.bytes)
}

// maySpillLocked reports whether more may be staged beyond the limits.
func (r *Route) maySpillLocked(more tally) bool {
	bytes, messages := r.limitsLocked()
	staged := r.count.staged
	staged.add(more)
	fits := staged.bytes <= max(stagedBytes, bytes/stagedPart) &&
		(messages == 0 || staged.count <= max(stagedMessages, messages/stagedPart))
	return fits || r.count.staged.count == 0
}

// makeRoom drops the oldest messages of a route that is DropOldest, if more would not
// fit else. Not synced: what wants the room is, behind it.
func (r *Route) makeRoom(d demand) error {
	if excess := r.wouldDrop(d); excess == (tally{}) {
		return nil
	}
	r.leasing.Lock()
	defer r.leasing.Unlock()
	for {
		excess := r.wouldDrop(d)
		if excess == (tally{}) {
			return nil
		}
		// Nothing is leased meanwhile.
		v, err := r.oldestReady(excess)
		if err != nil || len(v.rows) == 0 {
			return err // what is not enough is for judge to say
		}
		if err := r.q.await(r.submitDrop(v)); err != nil {
			return err
		}
		r.logDrops(uint64(len(v.rows)), dropsOldest)
	}
}

// wouldDrop is how much a route that is DropOldest would have to drop; nothing if that is
// not to be had, unless all that there is has to go.
func (r *Route) wouldDrop(d demand) tally {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	if r.opts.OnFull != DropOldest {
		return tally{}
	}
	excess, may := r.excessLocked(d), r.droppableLocked()
	switch {
	case d.anyway:
		return tally{min(excess.count, may.count), min(excess.bytes, may.bytes)}
	case may.count < excess.count || may.bytes < excess.bytes:
		return tally{}
	}
	return excess
}

// leasedNow lists the numbers that are leased.
func (r *Route) leasedNow() map[uint64]bool {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	now := make(map[uint64]bool, len(r.leased))
	for _, l := range r.leased {
		if !l.settled {
			now[l.seq] = true
		}
	}
	return now
}

// dropped are messages that make room.
type dropped struct {
	rows []row

	// looked is where they were looked for, and kept are the numbers of rows there that
	// are none: they were leased, belonged to a stage, or cannot be decoded.
	looked span
	kept   []uint64
}

// oldestReady reads the first messages that are ready, as many as the excess, or a page of
// them. It passes over a record that cannot be decoded, which becomes a dead letter when it
// is leased.
func (r *Route) oldestReady(excess tally) (v dropped, err error) {
	leased := r.leasedNow() // before it reads: they may be settled then, and must not be counted twice
	r.q.mu.Lock()
	first := r.firstReadyLocked()
	v.looked = span{first, first}
	r.q.mu.Unlock()
	from, to := seqKey(kindMessage, r.id, first), routeKey(kindMessage, r.id+1)
	for from != nil && len(v.rows) == 0 {
		var page []row
		if page, from, err = r.rowsAt(kindMessage, from, to); err != nil {
			return v, err
		}
		if r.choose(&v, page, &excess, leased) {
			break
		}
	}
	return v, nil
}

// choose takes from a page, and reports whether they are enough.
func (r *Route) choose(v *dropped, page []row, excess *tally, leased map[uint64]bool) (enough bool) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	for _, row := range page {
		if *excess == (tally{}) {
			return true
		}
		seq := row.Place.Seq
		v.looked.hi = seq + 1
		if leased[seq] || row.Dead() || !r.isReadyLocked(seq) {
			v.kept = append(v.kept, seq)
			continue
		}
		v.rows = append(v.rows, row)
		excess.sub(tally{min(excess.count, 1), min(excess.bytes, row.bytes)})
	}
	return false
}

// firstReadyLocked is the smallest number that may be ready. What was dropped lies below
// it, also where something older is leased for long.
func (r *Route) firstReadyLocked() uint64 {
	first := r.cursor
	for _, ss := range [...]spans{r.behind, r.turn} {
		if len(ss) > 0 {
			first = min(first, ss[0].lo)
		}
	}
	return first
}

// isReadyLocked reports whether a number that has a row, and is not leased, is that of a
// message that is ready, while nobody reads what is.
func (r *Route) isReadyLocked(seq uint64) bool {
	return seq >= r.cursor && !r.isStagedLocked(seq) || r.behind.has(seq) || r.turn.has(seq)
}

// submitDrop removes messages, and counts them.
func (r *Route) submitDrop(v dropped) (*write, error) {
	b := r.q.engine.db.NewBatch()
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	for _, row := range v.rows {
		if err := r.removeReadyLocked(b, row); err != nil {
			return nil, err
		}
	}
	r.count.drops.oldest += uint64(len(v.rows))
	r.passLocked(v)
	return r.q.submitLocked(b, false, r), nil
}

// removeReadyLocked removes a message that nobody has leased.
func (r *Route) removeReadyLocked(b *pebble.Batch, row row) error {
	size := tally{1, row.bytes}
	r.count.pending.sub(size)
	r.q.chargeLocked(row.UID, tally{}, size)
	r.goneLocked(row.Place.Seq)
	return b.Delete(seqKey(kindMessage, r.id, row.Place.Seq), nil)
}

// passLocked has nobody look again for what has gone. What was kept may have become ready
// since then.
func (r *Route) passLocked(v dropped) {
	cursor := r.passingLocked(v.looked.hi)
	var back []uint64
	for _, n := range v.kept {
		if r.behind.has(n) || n >= r.cursor && n < cursor && !r.isStagedLocked(n) {
			back = append(back, n)
		}
	}
	r.behind.dropSpan(v.looked)
	for _, n := range back {
		r.behind.add(span{n, n + 1})
	}
	r.cursor = cursor
}

// passingLocked is where the cursor is when it has passed all below a number: as in
// advanceLocked it passes a stage as a whole, and no Append.
func (r *Route) passingLocked(seq uint64) uint64 {
	cursor := max(r.cursor, seq)
	for i := r.searchStagedLocked(r.cursor); i < len(r.staged) && r.staged[i].lo < cursor; i++ {
		if r.staged[i].stage == nil {
			return r.staged[i].lo
		}
		cursor = max(cursor, r.staged[i].hi)
	}
	return cursor
}

// What the log says of the two ways to drop.
const (
	dropsOldest = "the oldest messages go to make room"
	dropsNewest = "what comes is dropped"
)

// dropLogEvery is how often a route that drops messages says so.
const dropLogEvery = 5 * time.Minute

// logDrops logs that messages were dropped: at once, and as long as it goes on now and
// then.
func (r *Route) logDrops(n uint64, why string) {
	r.q.mu.Lock()
	r.unlogged += n
	due := time.Since(r.dropLogged) > dropLogEvery
	if due {
		r.dropLogged, n, r.unlogged = time.Now(), r.unlogged, 0
	}
	r.q.mu.Unlock()
	if due {
		r.q.opts.Logger.Warn("messages are dropped, since the route is full", "route", r.Name(), "messages", n, "policy", why,
			"advice", "see why they do not leave, or give the route more room")
	}
}

// has reports whether a number is in the set.
func (ss spans) has(n uint64) bool {
	i, _ := slices.BinarySearchFunc(ss, n, func(e span, n uint64) int {
		if e.hi <= n {
			return -1
		}
		return 1
	})
	return i < len(ss) && ss[i].lo <= n
}

// dropSpan removes the numbers of a span.
func (ss *spans) dropSpan(gone span) {
	var left spans
	for _, s := range *ss {
		left.add(span{s.lo, min(s.hi, gone.lo)})
		left.add(span{max(s.lo, gone.hi), s.hi})
	}
	*ss = left
}

// dropsLocked reports whether the route is DropNewest and has no room for what would
// become ready. What is staged in it takes none yet, or files that are closed at the
// same time would drop each other.
func (r *Route) dropsLocked(size tally) bool {
	if r.opts.OnFull != DropNewest || size.count == 0 {
		return false
	}
	bytes, messages := r.limitsLocked()
	have, stored, l := r.count.all(), r.q.stored, &r.q.limits
	have.sub(r.count.staged)
	stored.sub(r.count.staged)
	return beyond(have.count, size.count, messages) > 0 || beyond(have.bytes, size.bytes, bytes) > 0 ||
		beyond(stored.count, size.count, l.Messages) > 0 || beyond(stored.bytes, size.bytes, l.Bytes) > 0
}
