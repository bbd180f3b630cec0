package queue

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fullRoute opens a queue with a route that holds 10 messages.
func fullRoute(t testing.TB, onFull OnFull) *Route {
	t.Helper()
	_, r := openQueue(t, Options{CommitGrace: -1})
	setOptions(t, r, RouteOptions{OnFull: onFull, Messages: 10})
	return r
}

// storeOne stores a message of a file of its own as a writer does.
func storeOne(t testing.TB, r *Route, line uint32) ID {
	t.Helper()
	s := r.NewStage(NewFileID(), StageInfo{File: "f", UID: 7})
	m := Message{ID: s.File().MessageID(line), Line: line, Body: []byte("body"), Ingested: time.Now()}
	if err := s.Put(0, []Message{m}); err != nil {
		t.Fatal(err)
	}
	commit(t, s)
	return m.ID
}

func storeMany(t testing.TB, r *Route, n int) []ID {
	t.Helper()
	var ids []ID
	for i := range n {
		ids = append(ids, storeOne(t, r, uint32(i+1)))
	}
	return ids
}

// TestRoute_DropOldest: the oldest messages that nobody has leased make room, each is
// counted, and a writer is refused only what no room can be made for.
func TestRoute_DropOldest(t *testing.T) {
	r := fullRoute(t, DropOldest)
	ids := storeMany(t, r, 10)
	ls := leaseAll(t, r, 3)
	r.Requeue(ls[2])
	ids = append(ids, storeMany(t, r, 5)...)
	if err := r.Append([]Message{{ID: "appended", UID: 8, Ingested: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(ids[:2], ids[8:], []ID{"appended"})
	if got := listed(t, r, Pending, Place{}); !slices.Equal(got, want) {
		t.Errorf("left are\n%s\nwant\n%s", idLines(got), idLines(want))
	}
	checkScan(t, r)
	if s, err := r.Stats(); err != nil || s.DroppedOldest != 6 || s.Ready != 8 || s.Leased != 2 {
		t.Errorf("stats are %+v, %v", s, err)
	}
	if err := r.DeadLetter(ls[0], "no"); err != nil {
		t.Fatal(err)
	}
	if err := r.Admit(7, 1, 1); err != nil {
		t.Errorf("a route that makes room refuses: %v", err)
	}
	if err := r.Append(messages(NewFileID(), 9)); !errors.Is(err, ErrFull) {
		t.Errorf("9 messages where 8 can go: %v, want %v", err, ErrFull)
	}
	if err := r.Append(messages(NewFileID(), 8)); err != nil {
		t.Errorf("8 messages where 8 can go: %v", err)
	}
	if got := leaseAll(t, r, 8); got[7].Line != 8 {
		t.Errorf("leased %s last", got[7].ID)
	}
	if err := r.Admit(7, 1, 1); !errors.Is(err, ErrFull) {
		t.Errorf("all are leased or dead: %v, want %v", err, ErrFull)
	}
	checkScan(t, r)
}

// TestRoute_DropOldestLeased: what is settled while room is made counts once.
func TestRoute_DropOldestLeased(t *testing.T) {
	r := fullRoute(t, DropOldest)
	storeMany(t, r, 10)
	ls := leaseAll(t, r, 4)
	r.leasing.Lock()
	v, err := r.oldestReady(tally{count: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Ack(ls[0]); err != nil {
		t.Fatal(err)
	}
	r.Requeue(ls[1])
	if err := r.q.await(r.submitDrop(v)); err != nil {
		t.Fatal(err)
	}
	r.leasing.Unlock()
	checkScan(t, r)
	if got := leaseAll(t, r, 5); got[0].ID != ls[1].ID {
		t.Errorf("leased %s first, want %s, which was requeued", got[0].ID, ls[1].ID)
	}
	checkScan(t, r)
}

// TestRoute_PurgeWhileAcked: a message that is acknowledged while an operator purges what
// is pending counts once.
func TestRoute_PurgeWhileAcked(t *testing.T) {
	_, r := openQueue(t, Options{})
	commit(t, putStage(t, r, 3))
	ls := leaseAll(t, r, 2)
	n, err := r.PurgeAll(Pending, func(m *Message) bool {
		if m.Line == 1 {
			if err := r.Ack(ls...); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if err != nil || n != 1 {
		t.Errorf("purged %d, %v, want 1", n, err)
	}
	checkScan(t, r)
	if s, err := r.Stats(); err != nil || s != (Stats{}) {
		t.Errorf("left are %+v, %v", s, err)
	}
}

// TestRoute_DropNewest: what comes is taken, and dropped when it would be ready, also
// in instalments, by Append and by a hand-over.
func TestRoute_DropNewest(t *testing.T) {
	r := fullRoute(t, DropNewest)
	ids := storeMany(t, r, 8)
	late, open := putStage(t, r, 5), putStage(t, r, 4)
	if err := open.CommitFirst(3, 20); err != nil {
		t.Fatal(err)
	}
	checkScan(t, r)
	if got := open.Len(); got != 1 {
		t.Errorf("%d entries are left of an instalment", got)
	}
	commit(t, late)
	commit(t, open) // the ninth
	want := append(slices.Clone(ids), open.File().MessageID(4))
	want = append(want, storeMany(t, r, 3)[0])
	if err := r.Append(messages(NewFileID(), 2)); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, r, Pending, Place{}); !slices.Equal(got, want) {
		t.Errorf("left are\n%s\nwant\n%s", idLines(got), idLines(want))
	}
	checkScan(t, r)
	if s, err := r.Stats(); err != nil || s.DroppedNewest != 3+5+2+2 || s.Ready != 10 || s.Staged != 0 {
		t.Errorf("stats are %+v, %v", s, err)
	}
	other, err := r.q.Route("other")
	if err != nil {
		t.Fatal(err)
	}
	storeMany(t, other, 2)
	ls := leaseAll(t, other, 2)
	if err := r.Ack(leaseAll(t, r, 1)...); err != nil {
		t.Fatal(err)
	}
	for _, l := range ls {
		if err := other.HandOver(Handover{Lease: l, Follow: []Follow{{r, *l.Message}}}); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := r.q.Stats(); err != nil || s.DroppedNewest != 13 || s.Ready+s.Leased != 10 {
		t.Errorf("stats are %+v, %v", s, err)
	}
	checkScan(t, r)
	if got := leaseAll(t, r, 10); got[9].ID != ls[0].ID+"/default" {
		t.Errorf("leased %s last, want what has followed", got[9].ID)
	}
}

// TestRoute_DropNewestBounds: what is staged beyond the limits has a bound of its own.
func TestRoute_DropNewestBounds(t *testing.T) {
	r := fullRoute(t, DropNewest)
	storeMany(t, r, 10)
	putStage(t, r, stagedMessages-1)
	putStage(t, r, 1)
	s := r.NewStage(NewFileID(), StageInfo{File: "f", UID: 7})
	if err := s.Put(0, messages(s.File(), 1)); !errors.Is(err, ErrFull) {
		t.Errorf("put %v, want %v", err, ErrFull)
	}
}

// TestRoute_OwnLimits: the limits of a route are its share of the store's, or its own,
// and it alone is full when they are reached.
func TestRoute_OwnLimits(t *testing.T) {
	for name, o := range map[string]RouteOptions{
		"share":    {Share: 0.5},
		"messages": {Messages: 10},
		"bytes":    {Bytes: 10 * storedBytes()},
	} {
		t.Run(name, func(t *testing.T) {
			q, r := openQueue(t, Options{Limits: Limits{Messages: 20, UserShare: 1}})
			other, err := q.Route("other")
			if err != nil {
				t.Fatal(err)
			}
			setOptions(t, r, o)
			storeMany(t, r, 10)
			if err := r.Append([]Message{storedMessage()}); !errors.Is(err, ErrFull) {
				t.Errorf("append %v, want %v", err, ErrFull)
			}
			if err := r.Admit(0, 1, 0); !errors.Is(err, ErrFull) {
				t.Errorf("admit %v, want %v", err, ErrFull)
			}
			storeMany(t, other, 10)
			if err := other.Admit(0, 1, 0); !errors.Is(err, ErrFull) {
				t.Errorf("the store is full: admit %v, want %v", err, ErrFull)
			}
			setOptions(t, other, RouteOptions{OnFull: DropOldest, Share: 1})
			storeMany(t, other, 3) // makes room in the store, and none in the other route
			checkScan(t, r)
			checkScan(t, other)
			if s, err := q.Stats(); err != nil || s.Ready != 20 || s.DroppedOldest != 3 {
				t.Errorf("stats are %+v, %v", s, err)
			}
		})
	}
}

// storedMessage is as large as those of storeOne.
func storedMessage() Message {
	return Message{ID: NewFileID().MessageID(1), Line: 1, UID: 7, File: "f", Body: []byte("body"), Ingested: time.Now()}
}

// storedBytes is how large a message of storeOne is, without its name.
func storedBytes() uint64 {
	m := storedMessage()
	m.File = ""
	return uint64(len(encodeRecord(&m)))
}

func TestRouteOptions_Validate(t *testing.T) {
	for _, o := range []RouteOptions{{Order: "lifo"}, {OnFull: "drop"}, {Share: 2}, {Share: -1}} {
		if err := o.Validate(); err == nil {
			t.Errorf("%+v is good", o)
		}
	}
	if err := (RouteOptions{}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestRoute_DropsCrash stores and settles messages in routes that are full, and goes on
// again and again with what a crash leaves of the disk: the counters equal a scan, and a
// message that is not there was acknowledged, or is counted as dropped.
func TestRoute_DropsCrash(t *testing.T) {
	rounds := 60
	if chaos() {
		rounds = 2000
	}
	for _, onFull := range []OnFull{DropOldest, DropNewest} {
		t.Run(string(onFull), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			d := &dropping{t: t, onFull: onFull, rng: rand.New(rand.NewPCG(seed, 0)), fs: vfs.NewCrashableMem(), acked: map[ID]bool{}}
			for range rounds {
				d.round()
			}
			if d.undone == 0 {
				t.Error("no crash has undone anything: the test does not test")
			}
		})
	}
}

// dropping is a run of TestRoute_DropsCrash.
type dropping struct {
	t      *testing.T
	onFull OnFull
	rng    *rand.Rand
	fs     *vfs.MemFS
	stored []ID // their Put or Append has returned
	acked  map[ID]bool
	before Stats
	undone int
}

func (d *dropping) round() {
	q, stages, err := Open("store", testOptions(d.fs))
	if err != nil {
		d.t.Fatal(err)
	}
	defer q.Close()
	r, err := q.Route("default")
	if err != nil {
		d.t.Fatal(err)
	}
	setOptions(d.t, r, RouteOptions{OnFull: d.onFull, Messages: 6})
	for _, s := range stages {
		commit(d.t, s)
	}
	d.check(r)
	for range d.rng.IntN(12) {
		switch d.rng.IntN(5) {
		case 0:
			ms := messages(NewFileID(), 1+d.rng.IntN(3))
			switch err := r.Append(ms); {
			case err == nil:
				d.stored = append(d.stored, messageIDs(ms)...)
			case !errors.Is(err, ErrFull): // what is leased makes no room
				d.t.Fatal(err)
			}
		case 1:
			leases, _, err := r.tryLease(2)
			if err != nil {
				d.t.Fatal(err)
			}
			for _, l := range leases[:d.rng.IntN(len(leases)+1)] {
				d.acked[l.ID] = true
				if err := r.Ack(l); err != nil {
					d.t.Fatal(err)
				}
			}
		default:
			if r.Admit(7, 1, 0) == nil {
				d.stored = append(d.stored, storeOne(d.t, r, 1))
			}
		}
	}
	d.check(r)
	d.before, _ = r.Stats()
	d.fs = d.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: d.rng.IntN(101), RNG: d.rng})
}

func (d *dropping) check(r *Route) {
	d.t.Helper()
	if err := scanCounters(r); err != nil {
		d.t.Fatal(err)
	}
	s, err := r.Stats()
	if err != nil {
		d.t.Fatal(err)
	}
	if s != d.before {
		d.undone++
	}
	there := map[ID]bool{}
	for _, id := range listed(d.t, r, Pending, Place{}) {
		there[id] = true
	}
	lost, acked := uint64(0), uint64(0)
	for _, id := range d.stored {
		switch {
		case there[id]:
		case d.acked[id]:
			acked++
		default:
			lost++
		}
	}
	dropped := s.DroppedOldest + s.DroppedNewest
	if lost > dropped || dropped > lost+acked || uint64(len(there)) != s.Ready+s.Leased {
		d.t.Fatalf("%d messages are lost and %d gone, %+v", lost, acked, s)
	}
}
