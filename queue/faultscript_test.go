package queue

import (
	"context"
	"errors"
	"testing"
	"time"
)

// faultRun does all that a queue does while the disk fails, as a careful owner
// does it: what has failed is tried again.
type faultRun struct {
	t    *testing.T
	disk *faultyDisk
	book *ledger
	opts Options

	q      *Queue
	stages []*faultStage
}

// faultStage is a stage and what its owner wants in it.
type faultStage struct {
	*Stage
	want []Message
	line int
}

func (r *faultRun) script() {
	r.open()
	a, b := r.route("a"), r.route("b")
	first, left := r.begin(a), r.begin(b)
	r.put(first, 0, 2)
	r.put(left, 0, 2)
	r.put(first, 2, 2)
	r.put(first, 3, 1)
	r.end(first, false)
	gone := r.begin(a)
	r.put(gone, 0, 2)
	r.end(gone, true)
	r.append(a, 3)
	r.flush()
	r.settle(r.lease(a, 8))
	r.put(left, 1, 2)
	r.append(b, 2)
	r.settle(r.lease(a, 8))
	r.flush()
	r.compact()
	r.put(left, 3, 1)
	r.part(left, 2)
	r.put(left, 2, 1)
	r.redrive(a)
	r.check("while running")
	if _, failed := r.disk.failed(); failed {
		r.recover("after the fault", r.disk.clone(), r.book.snapshot())
	}
	r.close()
	r.open()
	r.append(r.route("b"), 1)
	r.check("after a restart")
	r.drain()
	r.close()
}

// retry does what may fail by the fault until it succeeds.
func (r *faultRun) retry(name string, f func() error) {
	r.t.Helper()
	until(r.t, name, func() bool {
		err := within(r.t, name, f)
		if err != nil && !r.disk.expected(err) {
			r.t.Fatalf("%s: %v", name, err)
		}
		return err == nil
	})
}

// open opens the queue, with what is handed back as the stages.
func (r *faultRun) open() {
	r.t.Helper()
	var stages []*Stage
	r.retry("open", func() (err error) {
		r.q, stages, err = Open("store", r.opts)
		return err
	})
	old := r.stages
	r.stages = nil
	for _, s := range stages {
		back := &faultStage{Stage: s}
		for _, o := range old {
			if o.File() == s.File() {
				back = o
				back.Stage = s
			}
		}
		if want := len(back.want); want > 0 && s.Len() != want {
			r.t.Fatalf("stage came back with %d messages, want %d", s.Len(), want)
		}
		r.stages = append(r.stages, back)
	}
}

func (r *faultRun) route(name string) (route *Route) {
	r.retry("route", func() (err error) {
		route, err = r.q.Route(name)
		return err
	})
	return route
}

func (r *faultRun) begin(route *Route) *faultStage {
	s := &faultStage{Stage: route.NewStage(NewFileID(), StageInfo{File: "f"})}
	r.stages = append(r.stages, s)
	return s
}

// put keeps some messages and adds n, and tries until that has succeeded.
func (r *faultRun) put(s *faultStage, keep, n int) {
	r.t.Helper()
	old := len(s.want)
	r.book.release(messageIDs(s.want[keep:])...)
	add := messages(s.File(), s.line+n)[s.line:]
	s.line += n
	r.book.know(messageIDs(add)...)
	r.retry("put", func() error {
		err := putOne(s.Stage, keep, add)
		if told := r.disk.fault(err); told != nil {
			r.t.Errorf("Put: %v", told)
		}
		if errors.Is(err, ErrFault) {
			r.resumed()
			if got := s.Len(); got != old && got != keep+n {
				r.t.Errorf("after a failed Put the stage has %d messages, want %d or %d", got, old, keep+n)
			}
		}
		return err
	})
	r.book.store(messageIDs(add)...)
	s.want = append(s.want[:keep:keep], add...)
	if s.Len() != len(s.want) {
		r.t.Errorf("stage has %d messages, want %d", s.Len(), len(s.want))
	}
}

// part commits the first n messages of a stage, and tries until that has
// succeeded: an instalment that is done is not done again.
func (r *faultRun) part(s *faultStage, n int) {
	r.t.Helper()
	r.retry("commit a part", func() error {
		err := s.CommitFirst(n, uint64(s.line))
		if errors.Is(err, ErrFault) {
			r.resumed()
		}
		return err
	})
	s.want = s.want[n:]
	if s.Len() != len(s.want) {
		r.t.Errorf("stage has %d messages, want %d", s.Len(), len(s.want))
	}
}

// redrive lets a dead letter go again.
func (r *faultRun) redrive(route *Route) {
	r.t.Helper()
	r.retry("redrive", func() error {
		for e, err := range route.Entries(Dead, Place{}) {
			if err != nil {
				return err
			}
			again := *e.Message
			again.Reason = ""
			if err := route.Replace(Dead, e.Place, []Message{again}); !errors.Is(err, ErrNotFound) {
				return err
			}
		}
		return nil // it was done, though the answer was lost
	})
}

// resumed waits until the queue takes operations.
func (r *faultRun) resumed() {
	until(r.t, "resume", func() bool {
		_, err := r.q.Stats()
		return !errors.Is(err, ErrFault)
	})
}

// end commits or discards. A Commit never fails on a write.
func (r *faultRun) end(s *faultStage, discard bool) {
	r.t.Helper()
	if discard {
		r.book.release(messageIDs(s.want)...)
	}
	r.retry("end", func() error { return s.end(discard) })
	for i, o := range r.stages {
		if o == s {
			r.stages = append(r.stages[:i:i], r.stages[i+1:]...)
		}
	}
}

func (r *faultRun) append(route *Route, n int) {
	r.t.Helper()
	r.retry("append", func() error {
		ms := messages(NewFileID(), n)
		ms[n-1].Reason = "not-json"
		r.book.know(messageIDs(ms)...)
		err := route.Append(ms)
		if err == nil {
			r.book.store(messageIDs(ms)...)
		}
		if told := r.disk.fault(err); told != nil {
			r.t.Errorf("Append: %v", told)
		}
		return err
	})
}

// lease leases up to n messages; there must be one.
func (r *faultRun) lease(route *Route, n int) (leases []*Lease) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound/2)
	defer cancel()
	r.retry("lease", func() (err error) {
		leases, err = route.Lease(ctx, n)
		if errors.Is(err, ErrFault) {
			r.t.Errorf("Lease does not wait while the queue is parked: %v", err)
		}
		return err
	})
	return leases
}

// settle ends leases in all ways in turn. What a fault has dropped stays.
func (r *faultRun) settle(leases []*Lease) {
	r.t.Helper()
	for i, l := range leases {
		err := within(r.t, "settle", func() error {
			switch route := l.route; i {
			case 0:
				r.book.release(l.ID)
				return route.Ack(l)
			case 1:
				route.Requeue(l)
				return nil
			case 2:
				return route.Nack(l, time.Now().Add(-1))
			default:
				return route.DeadLetter(l, "too-large")
			}
		})
		if err != nil && !r.disk.expected(err) && !errors.Is(err, ErrNotLeased) {
			r.t.Errorf("settle: %v", err)
		}
	}
}

// engine returns the engine of the moment.
func (r *faultRun) engine() (e *engine) {
	r.retry("begin", func() error {
		err := r.q.begin()
		if err == nil {
			e = r.q.engine
			r.q.end()
		}
		return err
	})
	return e
}

// flush writes the memory table, or what the fault leaves of it.
func (r *faultRun) flush() {
	e := r.engine()
	r.background("flush", e, func(context.Context) error {
		done, err := e.db.AsyncFlush()
		if err != nil {
			return err
		}
		select {
		case <-done:
		case <-e.failed:
		}
		return nil
	})
}

func (r *faultRun) compact() {
	e := r.engine()
	r.background("compact", e, func(ctx context.Context) error {
		return e.db.Compact(ctx, []byte{0}, []byte{255}, false)
	})
}

// background runs what Pebble does for itself until it ends or the engine has
// failed.
func (r *faultRun) background(name string, e *engine, f func(context.Context) error) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // it is not made for a database that closes
		_ = f(ctx)
	}()
	within(r.t, name, func() error {
		select {
		case <-done:
		case <-e.failed:
		}
		return nil
	})
}

func (r *faultRun) check(when string) {
	r.t.Helper()
	r.retry("check "+when, func() error {
		r.resumed()
		if err := r.q.begin(); err != nil {
			return err
		}
		defer r.q.end() // the engine stays
		return r.book.check(r.q)
	})
}

// drain commits all and leases and acks until nothing is left.
func (r *faultRun) drain() {
	r.t.Helper()
	for _, s := range r.stages {
		r.retry("commit", s.Commit)
	}
	r.stages = nil
	for _, route := range allRoutes(r.q) {
		until(r.t, "drain", func() bool {
			var s Stats
			r.retry("stats", func() (err error) {
				s, err = route.Stats()
				return err
			})
			if s.Ready+s.Delayed+s.Leased+s.Staged == 0 {
				return true
			}
			leases := r.lease(route, 100)
			for _, l := range leases {
				r.book.release(l.ID)
			}
			if err := within(r.t, "ack", func() error { return route.Ack(leases...) }); err != nil {
				if !r.disk.expected(err) && !errors.Is(err, ErrNotLeased) {
					r.t.Errorf("ack: %v", err)
				}
			}
			return false
		})
	}
	r.check("after the drain")
}

// close closes the queue, which may tell of the fault but must end.
func (r *faultRun) close() {
	r.t.Helper()
	if err := within(r.t, "close", r.q.Close); err != nil && !r.disk.expected(err) {
		r.t.Errorf("close: %v", err)
	}
}
