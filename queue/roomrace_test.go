package queue

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestRoute_DropOldestStrandsNothing: what becomes ready while older messages are looked
// for is leased, whether its numbers were passed over before or not.
func TestRoute_DropOldestStrandsNothing(t *testing.T) {
	for _, order := range []Order{FIFO, NewestFirst} {
		for _, passed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s passed %t", order, passed), func(t *testing.T) {
				r := fullRoute(t, DropOldest)
				setOptions(t, r, RouteOptions{OnFull: DropOldest, Messages: 20, Order: order})
				if passed {
					storeMany(t, r, 1) // that there is something to lease
				}
				early := putStage(t, r, 2)
				storeMany(t, r, 3)
				open := putStage(t, r, 1)
				storeMany(t, r, 6)
				if passed {
					r.Requeue(leaseAll(t, r, 4)...)
				}
				r.leasing.Lock()
				v, err := r.oldestReady(tally{count: 8})
				if err != nil {
					t.Fatal(err)
				}
				commit(t, early)
				if err := r.q.await(r.submitDrop(v)); err != nil {
					t.Fatal(err)
				}
				r.leasing.Unlock()
				commit(t, open)
				if left := drainReady(t, r); !left[open.File().MessageID(1)] {
					t.Error("a message was dropped whose file was open")
				}
			})
		}
	}
}

// drainReady leases and acknowledges all that is said to be ready, each message once, and
// returns what it was.
func drainReady(t *testing.T, r *Route) map[ID]bool {
	t.Helper()
	checkScan(t, r)
	s, err := r.Stats()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[ID]bool{}
	for _, l := range leaseAll(t, r, int(s.Ready)) {
		if seen[l.ID] {
			t.Errorf("%s was leased twice", l.ID)
		}
		seen[l.ID] = true
		if err := r.Ack(l); err != nil {
			t.Fatal(err)
		}
	}
	if ls, _, err := r.tryLease(10); err != nil || len(ls) > 0 {
		t.Errorf("then leased %d more, %v", len(ls), err)
	}
	checkScan(t, r)
	return seen
}

// TestRoute_DropOldestTogether: writers who fill a route together are not refused, as each
// could have made the room that another one took; and nothing is stranded or counted twice.
func TestRoute_DropOldestTogether(t *testing.T) {
	const limit, writers, files = 200, 16, 40
	_, r := openQueue(t, Options{CommitGrace: -1})
	setOptions(t, r, RouteOptions{OnFull: DropOldest, Messages: limit})
	storeMany(t, r, limit)
	if err := r.makeRoom(demand{more: tally{count: 1}}); err != nil {
		t.Fatal(err)
	}
	storeOne(t, r, 1) // takes it
	if err := r.admit(7, tally{count: 1}); err != nil {
		t.Errorf("a writer is refused, since another one has taken the room that it has made: %v", err)
	}
	var writing, leasing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			var open *Stage
			for range files {
				s := r.NewStage(NewFileID(), StageInfo{File: "f", UID: 7})
				if err := s.Put(0, messages(s.File(), 1)); err != nil {
					t.Error(err)
				}
				if open != nil { // closed after one that was opened later
					if err := open.Commit(); err != nil {
						t.Error(err)
					}
				}
				open = s
			}
			if err := open.Commit(); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	acked := 0
	leasing.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			ls, _, err := r.tryLease(3)
			if err != nil {
				t.Error(err)
				return
			}
			for i, l := range ls {
				if i == 0 {
					acked++
					if err := r.Ack(l); err != nil {
						t.Error(err)
					}
				} else {
					r.Requeue(l)
				}
			}
		}
	})
	writing.Wait()
	close(done)
	leasing.Wait()
	s, err := r.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if stored := s.Ready + s.DroppedOldest + uint64(acked); stored != limit+1+writers*files {
		t.Errorf("%d of %d messages are accounted for, with %d acknowledged: %+v", stored, limit+1+writers*files, acked, s)
	}
	if s.Ready > limit+2*writers {
		t.Errorf("%d messages are left where %d fit", s.Ready, limit)
	}
	drainReady(t, r)
}

// TestRoute_DropOldestCorrupt: a record that cannot be decoded does not keep younger ones
// from making room, and is a dead letter in the end.
func TestRoute_DropOldestCorrupt(t *testing.T) {
	r := fullRoute(t, DropOldest)
	storeMany(t, r, 9)
	if err := r.q.engine.db.Set(seqKey(kindMessage, r.id, 1), []byte("junk"), nil); err != nil {
		t.Fatal(err)
	}
	storeMany(t, r, 4)
	if s, err := r.Stats(); err != nil || s.DroppedOldest != 3 {
		t.Errorf("stats are %+v, %v", s, err)
	}
	for range 9 {
		leaseAll(t, r, 1)
	}
	if s, err := r.Stats(); err != nil || s.Dead != 1 || s.Leased != 9 {
		t.Errorf("stats are %+v, %v", s, err)
	}
}

// followRoute opens a queue with a route, and one that follows it and holds few messages.
func followRoute(t *testing.T, limits Limits, onFull OnFull, holds uint64) (r, next *Route) {
	t.Helper()
	q, r := openQueue(t, Options{CommitGrace: -1, Limits: limits})
	next, err := q.Route("next")
	if err != nil {
		t.Fatal(err)
	}
	setOptions(t, next, RouteOptions{OnFull: onFull, Messages: holds, Share: 1})
	return r, next
}

// handOver has n messages of a route go on in another one.
func handOver(t *testing.T, r, next *Route, n int) {
	t.Helper()
	var all []Handover
	for _, l := range leaseAll(t, r, n) {
		all = append(all, Handover{Lease: l, Follow: []Follow{{next, *l.Message}}})
	}
	if err := r.HandOver(all...); err != nil {
		t.Fatal(err)
	}
	checkScan(t, r)
	checkScan(t, next)
}

// TestRoute_ImportWhenFull: what is imported into a full route is refused, and neither
// dropped, since it would be gone in both stores, nor stored without a limit.
func TestRoute_ImportWhenFull(t *testing.T) {
	r := fullRoute(t, DropNewest)
	storeMany(t, r, 8)
	mark := func(lines uint64) Mark { return Mark{Bundle: FileID{1}, Lines: lines, At: time.Now()} }
	if err := r.AppendMarked(messages(NewFileID(), 2), mark(2)); err != nil {
		t.Fatal(err)
	}
	if err := r.AppendMarked(messages(NewFileID(), 1), mark(3)); !errors.Is(err, ErrFull) {
		t.Errorf("import into a full route: %v", err)
	}
	if s, err := r.Stats(); err != nil || s.Ready != 10 || s.DroppedNewest != 0 {
		t.Errorf("stats are %+v, %v", s, err)
	}
	if m, err := r.q.Mark(FileID{1}); err != nil || m.Lines != 2 {
		t.Errorf("the mark is %+v, %v", m, err)
	}
}

// TestRoute_HandOverMakesRoom: more at once than a route holds makes all the room there is,
// so that the route does not grow with each time.
func TestRoute_HandOverMakesRoom(t *testing.T) {
	r, next := followRoute(t, Limits{}, DropOldest, 10)
	for range 5 {
		storeMany(t, r, 30)
		handOver(t, r, next, 30)
	}
	if s, err := next.Stats(); err != nil || s.Ready != 30 || s.DroppedOldest != 120 {
		t.Errorf("stats are %+v, %v", s, err)
	}
	drainReady(t, next)
}

// TestRoute_HandOverWhenFull: in a store that is full, what follows takes the room of its
// parents, and not that of others.
func TestRoute_HandOverWhenFull(t *testing.T) {
	for _, onFull := range []OnFull{DropOldest, DropNewest} {
		r, next := followRoute(t, Limits{Messages: 40, UserShare: 1}, onFull, 0)
		storeMany(t, r, 40)
		handOver(t, r, next, 10)
		handOver(t, r, next, 20)
		if s, err := next.Stats(); err != nil || s.Ready != 30 || s.DroppedOldest+s.DroppedNewest != 0 {
			t.Errorf("%s: stats are %+v, %v", onFull, s, err)
		}
	}
}

// TestRoute_HandOverDropsNewest: of messages that come at once those are dropped that do
// not fit, and not all.
func TestRoute_HandOverDropsNewest(t *testing.T) {
	r, next := followRoute(t, Limits{}, DropNewest, 10)
	ids := storeMany(t, r, 25)
	handOver(t, r, next, 25)
	if s, err := next.Stats(); err != nil || s.Ready != 10 || s.DroppedNewest != 15 {
		t.Errorf("stats are %+v, %v", s, err)
	}
	for i, id := range listed(t, next, Pending, Place{}) {
		if id != ids[i]+"/next" {
			t.Errorf("in place %d is %s", i, id)
		}
	}
}

// BenchmarkRoute_DropOldest stores a message in a full route, once with the oldest message
// on its way to a broker that does not answer: what was dropped behind it is not looked at
// again.
func BenchmarkRoute_DropOldest(b *testing.B) {
	for _, hangs := range []bool{false, true} {
		b.Run(fmt.Sprintf("hangs=%t", hangs), func(b *testing.B) {
			_, r := openQueue(b, Options{CommitGrace: -1})
			setOptions(b, r, RouteOptions{OnFull: DropOldest, Messages: 1000})
			storeMany(b, r, 1000)
			if hangs {
				leaseAll(b, r, 1)
			}
			for range 60 {
				ms := messages(NewFileID(), 900)
				for i := range ms {
					ms[i].Ingested = time.Now()
				}
				if err := r.Append(ms); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				storeOne(b, r, 1)
			}
		})
	}
}
