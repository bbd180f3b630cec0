package queue

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// coalescingRoute opens a queue with a route that coalesces.
func coalescingRoute(t testing.TB, o RouteOptions) *Route {
	t.Helper()
	_, r := openQueue(t, Options{CommitGrace: -1})
	o.Coalesce = true
	setOptions(t, r, o)
	return r
}

// about are messages of a file, each about something.
func about(f FileID, subjects ...string) []Message {
	ms := messages(f, len(subjects))
	for i, subject := range subjects {
		ms[i].Subject, ms[i].Ingested = subject, time.Now()
	}
	return ms
}

// stageAbout is a stage of a user with messages, each about something.
func stageAbout(t testing.TB, r *Route, uid uint32, subjects ...string) *Stage {
	t.Helper()
	s := r.NewStage(NewFileID(), StageInfo{File: "f", UID: uid})
	if err := s.Put(0, about(s.File(), subjects...)); err != nil {
		t.Fatal(err)
	}
	return s
}

// storeAbout stores a file as a writer does, and returns the ID of its last message.
func storeAbout(t testing.TB, r *Route, subjects ...string) ID {
	t.Helper()
	s := stageAbout(t, r, 7, subjects...)
	commit(t, s)
	return s.File().MessageID(uint32(len(subjects)))
}

// wantIDs compares what is in a state, in its order.
func wantIDs(t testing.TB, r *Route, state State, want ...ID) {
	t.Helper()
	if got := listed(t, r, state, Place{}); !slices.Equal(got, want) {
		t.Errorf("messages in state %d are\n%s\nwant\n%s", state, idLines(got), idLines(want))
	}
	checkScan(t, r)
}

func wantCoalesced(t testing.TB, r *Route, want uint64) {
	t.Helper()
	if s, err := r.Stats(); err != nil || s.Coalesced != want {
		t.Errorf("%d were replaced, %v, want %d", s.Coalesced, err, want)
	}
}

// hintRows reads the hints of a route.
func hintRows(t testing.TB, r *Route) map[subjectKey]hint {
	t.Helper()
	rows := map[subjectKey]hint{}
	err := r.q.eachRow(routeKey(kindLatest, r.id), routeKey(kindLatest, r.id+1), func(key, value []byte) (err error) {
		rows[subjectKey(key[5:])], err = decodeHint(value)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestRoute_Coalesce: of messages about the same that wait the last one is left, in its own
// place, whichever way it came. It proves Q11, as the tests below.
func TestRoute_Coalesce(t *testing.T) {
	r := coalescingRoute(t, RouteOptions{})
	storeAbout(t, r, "a")
	b := storeAbout(t, r, "b")
	other := stageAbout(t, r, 8, "a") // of another user
	commit(t, other)
	plain := storeAbout(t, r, "", "")
	a := storeAbout(t, r, "a")
	first := ID(plain[:len(plain)-1] + "1")
	wantIDs(t, r, Pending, b, other.File().MessageID(1), first, plain, a)
	wantCoalesced(t, r, 1)

	b = storeAbout(t, r, "b", "c", "b") // in a file
	c := ID(b[:len(b)-1] + "2")
	wantIDs(t, r, Pending, other.File().MessageID(1), first, plain, a, c, b)
	wantCoalesced(t, r, 3)

	appended := NewFileID()
	ms := about(appended, "a", "d", "a")
	for i := range ms {
		ms[i].UID = 7
	}
	if err := r.Append(ms); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, r, Pending, other.File().MessageID(1), first, plain, c, b, appended.MessageID(2), appended.MessageID(3))
	wantCoalesced(t, r, 5)

	open := stageAbout(t, r, 7, "c", "b", "d", "c") // in instalments
	wantIDs(t, r, Pending, other.File().MessageID(1), first, plain, c, b, appended.MessageID(2), appended.MessageID(3))
	if err := open.CommitFirst(2, 20); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, r, Pending, other.File().MessageID(1), first, plain, appended.MessageID(2), appended.MessageID(3),
		open.File().MessageID(1), open.File().MessageID(2))
	commit(t, open)
	left := []ID{other.File().MessageID(1), first, plain, appended.MessageID(3),
		open.File().MessageID(2), open.File().MessageID(3), open.File().MessageID(4)}
	wantIDs(t, r, Pending, left...)
	wantCoalesced(t, r, 9)
	var got []ID
	for _, l := range leaseAll(t, r, len(left)) {
		got = append(got, l.ID)
	}
	if !slices.Equal(got, left) {
		t.Errorf("leased\n%s\nwant\n%s", idLines(got), idLines(left))
	}
}

// TestRoute_CoalesceHandOver: what follows from a message replaces what waits in its route.
func TestRoute_CoalesceHandOver(t *testing.T) {
	r := coalescingRoute(t, RouteOptions{})
	next, err := r.q.Route("next")
	if err != nil {
		t.Fatal(err)
	}
	setOptions(t, next, RouteOptions{Coalesce: true})
	old := storeAbout(t, next, "a")
	id := storeAbout(t, r, "a")
	wantIDs(t, next, Pending, old)
	l := leaseAll(t, r, 1)[0]
	if err := r.HandOver(Handover{Lease: l, Follow: []Follow{{next, *l.Message}}}); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, next, Pending, id+"/next")
	wantCoalesced(t, next, 1)
	if rows := hintRows(t, r); len(rows) != 0 {
		t.Errorf("hints of what has left: %v", rows)
	}
}

// TestRoute_CoalesceLate: the order is that of the Puts, so that what is committed late is
// replaced by what was put after it, if that still waits.
func TestRoute_CoalesceLate(t *testing.T) {
	r := coalescingRoute(t, RouteOptions{})
	late := stageAbout(t, r, 7, "a", "b")
	a := storeAbout(t, r, "a")
	commit(t, late)
	wantIDs(t, r, Pending, late.File().MessageID(2), a)
	wantCoalesced(t, r, 1)

	late = stageAbout(t, r, 7, "a")
	storeAbout(t, r, "a")
	if err := r.Ack(leaseAll(t, r, 2)...); err != nil {
		t.Fatal(err)
	}
	commit(t, late)
	wantIDs(t, r, Pending, late.File().MessageID(1))
	wantCoalesced(t, r, 2)
}

// TestRoute_CoalesceLeased: what is on its way is not replaced, but when it comes back. What
// is delayed is, and what is dead is not.
func TestRoute_CoalesceLeased(t *testing.T) {
	for _, order := range []Order{FIFO, NewestFirst} {
		t.Run(string(order), func(t *testing.T) {
			r := coalescingRoute(t, RouteOptions{Order: order})
			storeAbout(t, r, "a")
			l := leaseAll(t, r, 1)[0]
			a := storeAbout(t, r, "a")
			wantIDs(t, r, Pending, l.ID, a)
			wantCoalesced(t, r, 0)
			if err := r.Nack(l, time.Now()); err != nil { // refused
				t.Fatal(err)
			}
			wantIDs(t, r, Pending, a)
			wantIDs(t, r, Delayed)
			wantCoalesced(t, r, 1)

			l = leaseAll(t, r, 1)[0]
			b := storeAbout(t, r, "a")
			r.Requeue(l) // without an answer
			got := leaseAll(t, r, 1)
			if got[0].ID != b {
				t.Errorf("leased %s, want %s", got[0].ID, b)
			}
			wantIDs(t, r, Pending, b)
			wantCoalesced(t, r, 2)

			if err := r.Nack(got[0], time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			wantIDs(t, r, Delayed, b)
			c := storeAbout(t, r, "a")
			wantIDs(t, r, Delayed)
			wantIDs(t, r, Pending, c)
			wantCoalesced(t, r, 3)

			if err := r.Nack(leaseAll(t, r, 1)[0], time.Now()); err != nil {
				t.Fatal(err)
			}
			l = leaseAll(t, r, 1)[0] // its time has come
			r.Requeue(l)
			d := storeAbout(t, r, "a")
			wantIDs(t, r, Pending, d)
			wantCoalesced(t, r, 4)

			if err := r.DeadLetter(leaseAll(t, r, 1)[0], "no"); err != nil {
				t.Fatal(err)
			}
			e := storeAbout(t, r, "a")
			wantIDs(t, r, Dead, d)
			wantIDs(t, r, Pending, e)
			wantCoalesced(t, r, 4)

			// What goes again is older than what came meanwhile, and is not sent after it.
			if _, err := r.Redrive(func(*Message) bool { return true }); err != nil {
				t.Fatal(err)
			}
			wantIDs(t, r, Pending, e, d)
			f := storeAbout(t, r, "a")
			wantIDs(t, r, Pending, d, f)
			if l = leaseAll(t, r, 1)[0]; l.ID != f {
				t.Errorf("leased %s, want %s", l.ID, f)
			}
			if order == FIFO { // its turn would have been before
				wantIDs(t, r, Pending, f)
				wantCoalesced(t, r, 6)
			}
		})
	}
}

// TestRoute_CoalesceWhileAcked: what is settled while a later message becomes ready is not
// removed twice, though its row may still be there.
func TestRoute_CoalesceWhileAcked(t *testing.T) {
	r := coalescingRoute(t, RouteOptions{})
	storeAbout(t, r, "a")
	l := leaseAll(t, r, 1)[0]
	s := stageAbout(t, r, 7, "a")
	w, err := r.submitSettle(r.q.engine.db.NewBatch(), []*Lease{l}, func(*pebble.Batch, *Lease) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s)
	if err := r.q.await(w, nil); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, r, Pending, s.File().MessageID(1))
	wantCoalesced(t, r, 0)
}

// TestRoute_CoalesceOld: what comes from elsewhere with an age of its own neither replaces
// what is younger nor is replaced by it, and gets a hint with its own number.
func TestRoute_CoalesceOld(t *testing.T) {
	r := coalescingRoute(t, RouteOptions{})
	a := storeAbout(t, r, "a")
	old := about(NewFileID(), "a", "b")
	for i := range old {
		old[i].UID, old[i].Ingested = 7, time.Unix(1, 0)
	}
	if err := r.Append(old); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, r, Pending, a, old[0].ID, old[1].ID)
	for i, l := range leaseAll(t, r, 3) {
		if want := []ID{a, old[0].ID, old[1].ID}[i]; l.ID != want {
			t.Errorf("leased %s, want %s", l.ID, want)
		}
		r.Requeue(l)
	}
	wantCoalesced(t, r, 0)

	fresh := about(NewFileID(), "b", "b")
	for i := range fresh {
		fresh[i].UID = 7
	}
	values := encodeAll(fresh)
	c, err := r.coalesceValues(values)
	if err != nil {
		t.Fatal(err)
	}
	other := putStage(t, r, 3) // takes numbers meanwhile
	b := r.q.engine.db.NewBatch()
	r.q.mu.Lock()
	e, err := r.appendLocked(b, values)
	if err == nil {
		err = c.applyLocked(b, e.lo)
	}
	r.q.chargeLocked(7, sizeOf(values), tally{})
	w := r.q.submitLocked(b, true, r)
	r.q.mu.Unlock()
	if err := r.q.await(w, err); err != nil {
		t.Fatal(err)
	}
	r.ready(e)
	if err := other.Discard(); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, r, Pending, a, old[0].ID, fresh[1].ID)
	last := storeAbout(t, r, "b")
	wantIDs(t, r, Pending, a, old[0].ID, last)
}

// TestRoute_CoalesceFull: what replaces others needs no more room, where a full route would
// drop what comes.
func TestRoute_CoalesceFull(t *testing.T) {
	r := coalescingRoute(t, RouteOptions{OnFull: DropNewest, Messages: 2})
	storeAbout(t, r, "a", "b")
	a := storeAbout(t, r, "a")
	storeAbout(t, r, "c")
	b := storeAbout(t, r, "b")
	wantIDs(t, r, Pending, a, b)
	if s, err := r.Stats(); err != nil || s.Coalesced != 2 || s.DroppedNewest != 1 {
		t.Errorf("stats are %+v, %v", s, err)
	}
}

// TestRoute_CoalesceHints: hints go with their messages, wrong ones cost none, and what is
// left of them is removed and known to Check.
func TestRoute_CoalesceHints(t *testing.T) {
	fs := vfs.NewMem()
	q, _, err := Open("store", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	setOptions(t, r, RouteOptions{Coalesce: true})
	a, b := storeAbout(t, r, "a"), storeAbout(t, r, "b")
	staged := stageAbout(t, r, 7, "c")
	if got := len(hintRows(t, r)); got != 2 {
		t.Errorf("%d hints of two messages", got)
	}
	seqOf := map[ID]uint64{}
	for e, err := range r.Entries(Pending, Place{}) {
		if err != nil {
			t.Fatal(err)
		}
		seqOf[e.ID] = e.Place.Seq
	}
	for name, h := range map[string]hint{
		"of another subject": {seq: seqOf[b]}, "of nothing": {seq: 1 << 40},
		"of a delayed message that is gone": {seq: 1 << 40, due: 7}, "of what is staged": {seq: seqOf[b] + 1},
	} {
		for _, subject := range []string{"a", "c"} {
			setHint(t, r, subject, h)
		}
		for _, subject := range []string{"a", "c"} {
			if is, err := r.standingAbout(subject, h); err != nil || is {
				t.Errorf("a hint %s is believed (%v)", name, err)
			}
		}
	}
	commit(t, stageAbout(t, r, 7, "a")) // finds a hint that is wrong
	setHint(t, r, "gone", hint{seq: 1 << 40})
	if err := q.tend(); err != nil {
		t.Fatal(err)
	}
	if rows := hintRows(t, r); len(rows) != 2 { // of a and b
		t.Errorf("hints are %v", rows)
	}
	for _, l := range leaseAll(t, r, 2) { // a, which nothing replaced, is passed over
		if l.ID == a {
			t.Errorf("leased %s, which is replaced", a)
		}
		if err := r.Ack(l); err != nil {
			t.Fatal(err)
		}
	}
	if rows := hintRows(t, r); len(rows) != 0 {
		t.Errorf("left are %v", rows)
	}
	commit(t, staged)
	setOptions(t, r, RouteOptions{})
	if err := q.tend(); err != nil {
		t.Fatal(err)
	}
	if rows := hintRows(t, r); len(rows) != 0 || r.hinted {
		t.Errorf("left are %v, though it does not coalesce any more", rows)
	}
	checkHints(t, q, fs, r)
}

// checkHints has Check find one that is good, one of an unknown route and one that cannot
// be read.
func checkHints(t *testing.T, q *Queue, fs vfs.FS, r *Route) {
	setHint(t, r, "good", hint{seq: 1})
	for key, value := range map[string][]byte{
		string(hintKey(77, subjectKey{})): hint{seq: 1}.encode(), string(hintKey(r.id, subjectKey{1})): []byte("junk"),
	} {
		b := q.engine.db.NewBatch()
		if err := b.Set([]byte(key), value, nil); err != nil {
			t.Fatal(err)
		}
		if err := q.engine.await(q.engine.submit(b, true, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if got := checkStore(t, fs, true); got.Count != 2 || got.Kinds["hint"] != 2 || !got.Repaired || got.Routes[0].Hints != 1 {
		t.Errorf("Check has found %+v", got)
	}
	if got := checkStore(t, fs, false); got.Count != 0 {
		t.Errorf("after the repair: %+v", got)
	}
}

func setHint(t testing.TB, r *Route, subject string, h hint) {
	t.Helper()
	b := r.q.engine.db.NewBatch()
	if err := b.Set(hintKey(r.id, keyOfSubject(7, subject)), h.encode(), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.q.engine.await(r.q.engine.submit(b, true, nil)); err != nil {
		t.Fatal(err)
	}
}

// standingAbout reports whether a hint about a subject of user 7 is believed.
func (r *Route) standingAbout(subject string, h hint) (bool, error) {
	_, found, err := r.standing(keyOfSubject(7, subject), h)
	return found, err
}

func TestHint_RoundTrip(t *testing.T) {
	want := hint{seq: 1 << 60, due: 1}
	if got, err := decodeHint(want.encode()); err != nil || got != want {
		t.Errorf("decoded %+v, %v, want %+v", got, err, want)
	}
}

// TestGuard_CoalescingSyncs: a close costs one sync in a route that coalesces as well, and
// without a Subject not a byte more.
func TestGuard_CoalescingSyncs(t *testing.T) {
	r := coalescingRoute(t, RouteOptions{})
	before := r.q.Store().Syncs.Count()
	const files = 50
	for i := range files {
		storeAbout(t, r, fmt.Sprint(i%5))
	}
	if got := r.q.Store().Syncs.Count() - before; got != files {
		t.Errorf("%d syncs for %d files", got, files)
	}
	wantCoalesced(t, r, files-5)
	if got := slices.Collect(maps.Keys(hintRows(t, r))); len(got) != 5 {
		t.Errorf("%d hints of 5 messages", len(got))
	}
}
