package queue

import (
	"errors"
	"fmt"
	"time"
)

// The waits between attempts to open the database again.
const (
	minReopenWait = 50 * time.Millisecond
	maxReopenWait = 5 * time.Second
)

// keepOpen replaces engines that have failed and does the housekeeping, until the
// queue closes.
func (q *Queue) keepOpen() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var clock clock
	last := clock.now()
	for {
		select {
		case <-ticker.C:
			last = q.tendClock(last, clock.now())
			if err := q.tend(); err != nil && !errors.Is(err, ErrFault) {
				q.opts.Logger.Error("housekeeping", "error", err)
			}
		case <-q.done:
			return
		case <-q.faults:
			if q.engine.hasFailed() { // only this goroutine changes it
				q.replace(q.engine)
			}
		}
	}
}

// faulted wakes keepOpen, and never waits.
func (q *Queue) faulted() {
	select {
	case q.faults <- struct{}{}:
	default:
	}
}

// replace parks the queue, opens the database again, and resumes.
func (q *Queue) replace(e *engine) {
	q.mu.Lock()
	q.parked, q.resumed = e.err, make(chan struct{})
	q.refuseLocked()
	q.parks++
	q.mu.Unlock()
	q.opts.Logger.Error("the store has failed and is opened again", "error", e.err)
	q.awaitIdle()
	_ = e.close() // its failure is known
	full := e.err
	for wait := minReopenWait; ; wait = min(2*wait, maxReopenWait) {
		if isFull(full) {
			q.dropBallast()
		}
		err := q.load()
		if err == nil {
			break
		}
		full = err
		q.mu.Lock()
		q.parked = fmt.Errorf("%w: open again: %w", ErrFault, err)
		q.refuseLocked()
		q.mu.Unlock()
		q.opts.Logger.Error("open the store again", "error", err, "retry_in", wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-q.done:
			timer.Stop()
			return
		}
	}
	orphans := q.resume()
	q.opts.Logger.Info("the store is open again")
	for _, s := range orphans {
		if err := s.end(s.discard); err != nil {
			q.opts.Logger.Error("end stage", "file", s.info.File, "error", err)
		}
	}
}

// resume ends the parking. It returns the stages whose owners have ended them:
// the writes that did so are lost, or were never made.
func (q *Queue) resume() []*Stage {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parked = nil
	q.refuseLocked()
	close(q.resumed)
	var orphans []*Stage
	for _, s := range q.stages {
		if s.owed {
			orphans = append(orphans, s)
		}
	}
	for _, r := range q.routes {
		r.signal()
	}
	return orphans
}

// adoptLocked takes up what the store says. Routes and stages that callers hold
// stay the same objects.
func (q *Queue) adoptLocked(im *image) {
	for name, now := range im.routes {
		if r := q.routes[name]; r != nil {
			r.adoptLocked(now)
		} else {
			q.routes[name] = now
		}
	}
	q.users, q.stored = im.users, im.stored
	clear(q.charged)
	first := q.resumed == nil
	for file, s := range q.stages {
		if im.stages[file] == nil {
			s.adoptLocked(&Stage{})
			delete(q.stages, file)
		}
	}
	for file, now := range im.stages {
		if s := q.stages[file]; s != nil {
			s.adoptLocked(now)
			continue
		}
		now.route = q.routes[now.route.Name()]
		// In the life of a queue, a stage that nobody knows was committed, by
		// a write that is lost. (A discard is synced.)
		now.owed = !first
		q.stages[file] = now
	}
}

// adoptLocked makes the route what the store says. All leases are dropped.
func (r *Route) adoptLocked(now *Route) {
	for _, l := range r.leased {
		l.settled = true
	}
	r.count, r.cursor, r.nextDue = now.count, now.cursor, now.nextDue
	r.staged, r.hinted = now.staged, now.hinted
	r.behind, r.turn, r.reading, r.gone, r.leased, r.settled = nil, nil, nil, nil, nil, 0
}

// adoptLocked makes the stage what the store says: what the last successful Put
// left, or, if one failed, perhaps what that one wanted.
func (s *Stage) adoptLocked(now *Stage) {
	s.extents, s.entries, s.content, s.ticket = now.extents, now.entries, now.content, now.ticket
	s.going = nil
	s.info.Committed = now.info.Committed
	for _, e := range s.extents {
		e.stage = s
	}
}
