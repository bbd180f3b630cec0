package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Lease is a message that has been handed out and is not settled. Leases are
// forgotten when the queue closes: their messages are ready again then.
type Lease struct {
	*Message

	route   *Route
	seq     uint64
	bytes   uint64 // of the stored record
	settled bool   // guarded by q.mu
}

// leaseBytes is after how many bytes of stored records a Lease reads no further:
// they are in memory until they are settled, and may be of 16 MiB each.
const leaseBytes = 16 << 20

// Lease hands out the next messages, at most max and not many more bytes than
// leaseBytes, and waits for the first one.
//
// While the queue is parked it waits, and when the disk does not give what it has
// it tries again. Errors: that of ctx, ErrClosed.
func (r *Route) Lease(ctx context.Context, max int) ([]*Lease, error) {
	for failures := 0; ; {
		leases, wait, err := r.tryLease(uint64(max))
		switch {
		case errors.Is(err, ErrFault):
			if err = r.q.awaitResume(ctx); err == nil {
				continue
			}
		case err != nil && !errors.Is(err, ErrClosed):
			if err = r.awaitReadable(ctx, err, failures); err == nil {
				failures++
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("lease from route %q: %w", r.Name(), err)
		}
		if len(leases) > 0 {
			r.signal() // there may be more, for somebody else
			return leases, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.wake:
		case <-timer.C:
		case <-r.q.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
		timer.Stop()
		if err != nil {
			return nil, err
		}
	}
}

// awaitReadable waits after a failure to read, longer each time.
func (r *Route) awaitReadable(ctx context.Context, failure error, failures int) error {
	wait := min(minReopenWait<<min(failures, 10), maxReopenWait)
	r.q.opts.Logger.Error("messages cannot be read", "route", r.Name(), "error", failure, "retry_in", wait)
	return r.q.pause(ctx, nil, wait)
}

// awaitResume waits until the queue is not parked any more.
func (q *Queue) awaitResume(ctx context.Context) error {
	q.mu.Lock()
	resumed := q.resumed
	if q.parked == nil {
		// The fault is so new that keepOpen has not seen it.
		resumed = nil
	}
	q.mu.Unlock()
	return q.pause(ctx, resumed, minReopenWait)
}

// pause waits until early is closed, but not longer than at most.
func (q *Queue) pause(ctx context.Context, early <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-early:
	case <-timer.C:
	case <-q.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// noWait is how long Lease waits when nothing but wake will bring a message.
const noWait = time.Hour

// tryLease hands out what is ready, or says when to look again.
func (r *Route) tryLease(max uint64) ([]*Lease, time.Duration, error) {
	if err := r.q.begin(); err != nil {
		return nil, 0, err
	}
	defer r.q.end()
	r.leasing.Lock()
	defer r.leasing.Unlock()
	// A part only, so that a flood of messages that are refused again and again
	// cannot keep out those that are new.
	if err := r.promote(time.Now(), (max+7)/8); err != nil {
		return nil, 0, err
	}
	for {
		wanted, down, wait := r.plan(max)
		if len(wanted) == 0 {
			return nil, wait, nil
		}
		read := r.read
		if down {
			read = r.readNewest
		}
		got, err := read(wanted, max)
		if err != nil {
			got = taken{left: wanted}
		}
		if r.hand(got); err == nil {
			got.leases, err = r.setAside(got.leases)
		}
		if err == nil {
			got.leases, err = r.passReplaced(got.leases)
		}
		if err != nil || len(got.leases) > 0 {
			return got.leases, 0, err
		}
	}
}

// plan takes numbers that are ready out of behind or from the cursor on, into
// reading. When there are none it says how long to wait for more. They are to be
// looked through from their end if down is set.
func (r *Route) plan(max uint64) (wanted spans, down bool, wait time.Duration) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	wait = noWait
	if r.nextDue != 0 {
		wait = time.Until(time.Unix(0, r.nextDue))
	}
	if r.opts.Order == NewestFirst {
		r.reading, down = r.planNewestLocked(max)
		return r.reading, down, wait
	}
	r.reading = r.behind.take(max)
	max -= r.reading.size()
	if young := r.advanceLocked(max, &r.reading); young > 0 {
		wait = min(wait, young)
	}
	return r.reading, false, wait
}

// advanceLocked moves the cursor over ready numbers, which go to a set, and
// over stages that are not to be waited for. It returns how long to wait for the
// stage that stopped it.
func (r *Route) advanceLocked(max uint64, into *spans) (young time.Duration) {
	i := r.searchStagedLocked(r.cursor)
	for n := uint64(0); n < max && r.cursor < r.count.next; {
		end := r.count.next
		if i < len(r.staged) {
			end = r.staged[i].lo
		}
		if end > r.cursor {
			end = r.cursor + min(end-r.cursor, max-n)
			n += end - r.cursor
			into.add(span{r.cursor, end})
			r.cursor = end
			continue
		}
		// An Append is not passed over: the head that the next batch stores
		// would be behind it, and after a crash nobody would come upon it. It
		// wakes us when it is on disk.
		if r.staged[i].stage == nil {
			return noWait
		}
		// Its RELEASE is on its way, or its writer goes on: G6.
		young = r.q.opts.CommitGrace - time.Since(r.staged[i].since)
		if young > 0 && r.opts.Order == FIFO {
			return young
		}
		r.cursor = r.staged[i].hi
		i++
	}
	return 0
}

// taken is what was read of the numbers that were wanted, and what was left: turn
// goes next.
type taken struct {
	leases     []*Lease
	turn, left spans
}

// read reads the messages with the given numbers, and leaves those that would be too
// much. A number without a row is settled or a dead letter.
func (r *Route) read(wanted spans, _ uint64) (t taken, err error) {
	size := uint64(0)
	for i, sp := range wanted {
		lo, hi := seqKey(kindMessage, r.id, sp.lo), seqKey(kindMessage, r.id, sp.hi)
		err := r.q.eachRow(lo, hi, func(key, value []byte) error {
			found := decodeRow(key, value)
			t.leases = append(t.leases, r.leaseOf(found))
			if size += found.bytes; size >= leaseBytes {
				sp.lo = found.Place.Seq + 1
				return errStop
			}
			return nil
		})
		if err != nil {
			return t, err
		}
		if size >= leaseBytes {
			t.left.add(sp)
			t.left = append(t.left, wanted[i+1:]...)
			return t, nil
		}
	}
	return t, nil
}

func (r *Route) leaseOf(found row) *Lease {
	return &Lease{Message: found.Message, route: r, seq: found.Place.Seq, bytes: found.bytes}
}

// corruptMessage stands for a record that cannot be decoded: a dead letter with
// all that there is.
func corruptMessage(value []byte, err error) *Message {
	// The same each time that it is read.
	sum := sha256.Sum256(value)
	return &Message{
		ID:     FileID(sum[:16]).MessageID(0),
		Body:   append([]byte(nil), value...),
		Reason: "corrupt-record: " + err.Error(),
	}
}

// setAside makes dead letters of records that cannot be decoded.
func (r *Route) setAside(leases []*Lease) ([]*Lease, error) {
	good := leases[:0]
	for _, l := range leases {
		if !l.Dead() {
			good = append(good, l)
		} else if err := r.DeadLetter(l, l.Reason); err != nil {
			return nil, err
		}
	}
	return good, nil
}

// hand enters leases as leased, and puts back the numbers that were not read.
func (r *Route) hand(t taken) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	r.reading = nil
	if len(t.turn) > 0 {
		r.turn = t.turn
	}
	for _, sp := range t.left {
		r.behind.add(sp)
	}
	for _, l := range t.leases {
		i := len(r.leased)
		if i > 0 && r.leased[i-1].seq > l.seq {
			i, _ = slices.BinarySearchFunc(r.leased, l.seq, compareLease)
		}
		r.leased = slices.Insert(r.leased, i, l)
	}
}

// compareLease compares a lease with a number.
func compareLease(l *Lease, seq uint64) int { return cmp.Compare(l.seq, seq) }
