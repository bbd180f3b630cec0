package queue

import (
	"context"
	"sync"
)

// The sweep: what is settled is deleted row by row at once, which lets a scan
// pass over it quickly; now and then the whole prefix goes by a range deletion,
// which lets Pebble drop its files unread; and when enough has gone, the range is
// compacted, so that the space is returned without a restart.
const (
	sweepRows   = 8192    // rows that make a range deletion worth it
	compactRows = 200_000 // rows that make a compaction worth it
	sweepGaps   = 64      // range deletions in one sweep, between open stages
)

// tend does the housekeeping. It is called every second.
func (q *Queue) tend() error {
	if err := q.begin(); err != nil {
		return nil // the next time
	}
	defer q.end()
	if err := q.keepBallast(); err != nil {
		q.opts.Logger.Warn("keep the ballast", "error", err)
	}
	q.mu.Lock()
	routes := make([]*Route, 0, len(q.routes))
	for _, r := range q.routes {
		routes = append(routes, r)
	}
	q.mu.Unlock()
	for _, r := range routes {
		if err := q.await(r.submitSweep()); err != nil {
			return err
		}
		if err := r.compact(); err != nil {
			return err
		}
		if err := r.tendHints(); err != nil {
			return err
		}
	}
	return nil
}

// submitSweep submits range deletions for what lies before the head. It does not
// sync: if it is lost, the rows are settled all the same.
func (r *Route) submitSweep() (*write, error) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	head, from := r.headLocked(), r.count.swept
	if head < from {
		r.count.swept = head // a late commit; its rows are swept when they go
		return nil, nil
	}
	swept := r.sweepNewestLocked()
	if n := head - from; n > 0 && (n >= sweepRows || r.count.pending.count == 0) {
		for _, gap := range r.gapsLocked(span{from, head}, sweepGaps) {
			swept.add(gap)
		}
		r.count.swept = head
	}
	if len(swept) == 0 {
		return nil, nil
	}
	b := r.q.engine.db.NewBatch()
	for _, sp := range swept {
		lo, hi := seqKey(kindMessage, r.id, sp.lo), seqKey(kindMessage, r.id, sp.hi)
		if err := b.DeleteRange(lo, hi, nil); err != nil {
			return nil, err
		}
	}
	r.noteSweptLocked(swept)
	return r.q.submitLocked(b, false, r), nil
}

// noteSweptLocked remembers what there is to compact.
func (r *Route) noteSweptLocked(swept spans) {
	all := span{swept[0].lo, swept[len(swept)-1].hi}
	if r.unpacked > 0 {
		all = span{min(all.lo, r.swept.lo), max(all.hi, r.swept.hi)}
	}
	r.unpacked += swept.size()
	r.swept = all
}

// compact returns the space of what was swept, once it is much, or once nothing
// is left.
func (r *Route) compact() error {
	r.q.mu.Lock()
	rows, left, swept := r.unpacked, r.count.pending.count, r.swept
	if rows == 0 || rows < compactRows && left > 0 {
		r.q.mu.Unlock()
		return nil
	}
	r.unpacked = 0
	r.q.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		defer cancel()
		select {
		case <-r.q.done:
		case <-r.q.engine.failed:
		case <-ctx.Done():
		}
	})
	err := r.q.engine.compact(ctx, seqKey(kindMessage, r.id, swept.lo), seqKey(kindMessage, r.id, swept.hi))
	stopped := ctx.Err() != nil
	cancel()
	if stopped {
		return nil
	}
	return err
}

// compact rewrites what lies in a range of keys, without what is deleted.
func (e *engine) compact(ctx context.Context, lo, hi []byte) error {
	return answered(func() error {
		if err := e.db.Compact(ctx, lo, hi, false); err != nil {
			return err
		}
		// Deletions leave the memory table, and its log the disk.
		_, err := e.db.AsyncFlush()
		return err
	})
}
