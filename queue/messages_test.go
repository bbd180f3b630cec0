package queue

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// listed returns the IDs of the messages in a state behind a place.
func listed(t testing.TB, r *Route, state State, after Place) (list []ID) {
	t.Helper()
	for e, err := range r.Entries(state, after) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.ID)
	}
	return list
}

// TestRoute_Entries: messages are listed in each state, in order, also from any
// place on, and each is found at its place.
func TestRoute_Entries(t *testing.T) {
	_, r := openQueue(t, Options{})
	const n = 2*pageSize + 10
	want := map[State][]ID{}
	ms := messages(NewFileID(), n)
	for i := range ms {
		state := []State{Pending, Dead, Partial}[i%3]
		if state != Pending {
			ms[i].Reason, ms[i].Partial = "test", state == Partial
		}
		want[state] = append(want[state], ms[i].ID)
	}
	if err := r.Append(ms); err != nil {
		t.Fatal(err)
	}
	leases := leaseAll(t, r, 20)
	for i, l := range leases { // the last is due first
		if err := r.Nack(l, time.Now().Add(time.Hour-time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
		want[Delayed] = append([]ID{l.ID}, want[Delayed]...)
	}
	want[Pending] = want[Pending][20:]
	for state, ids := range want {
		i := 0
		for e, err := range r.Entries(state, Place{}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.ID != ids[i] {
				t.Fatalf("state %d: entry %d is %s, want %s", state, i, e.ID, ids[i])
			}
			i++
			if i%50 == 0 && !slices.Equal(listed(t, r, state, e.Place), ids[i:]) {
				t.Fatalf("state %d: the list behind entry %d is not the rest", state, i)
			}
			m, err := r.Entry(state, e.Place)
			if err != nil || m.ID != e.ID || m.Partial != (state == Partial) {
				t.Fatalf("state %d: entry at %+v is %+v, %v", state, e.Place, m, err)
			}
		}
		if i != len(ids) {
			t.Errorf("state %d: %d entries, want %d", state, i, len(ids))
		}
	}
	if _, err := r.Entry(Dead, Place{Seq: 1 << 40}); !errors.Is(err, ErrNotFound) {
		t.Errorf("no entry: %v, want %v", err, ErrNotFound)
	}
}

// TestRoute_EntriesOfLargeRecords: a page is bounded in bytes, too.
func TestRoute_EntriesOfLargeRecords(t *testing.T) {
	_, r := openQueue(t, Options{})
	ms := messages(NewFileID(), 5)
	for i := range ms {
		ms[i].Body, ms[i].Partial, ms[i].Reason = make([]byte, pageBytes), true, "torn"
	}
	if err := r.Append(ms); err != nil {
		t.Fatal(err)
	}
	page, next, err := r.readPage(kindPartial, routeKey(kindPartial, r.id))
	if err != nil || len(page) != 1 || next == nil {
		t.Errorf("a page has %d rows, next %x, %v", len(page), next, err)
	}
	if got := listed(t, r, Partial, Place{}); !slices.Equal(got, messageIDs(ms)) {
		t.Errorf("listed %v", got)
	}
}

// TestRoute_Replace: one message goes and others come, charged to the same user.
func TestRoute_Replace(t *testing.T) {
	q, r := openQueue(t, Options{})
	ms := messages(NewFileID(), 3)
	for i := range ms {
		ms[i].UID = 7
	}
	ms[0].Reason, ms[0].Partial = "torn", true
	ms[1].Reason = "not-json"
	if err := r.Append(ms); err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Entries(Pending, Place{}) {
		if err != nil {
			t.Fatal(err)
		}
		leased := leaseAll(t, r, 1)
		if err := r.Purge(Pending, e.Place); !errors.Is(err, ErrLeased) {
			t.Errorf("purge of a leased message: %v, want %v", err, ErrLeased)
		}
		if err := r.Ack(leased...); err != nil {
			t.Fatal(err)
		}
		if err := r.Purge(Pending, e.Place); !errors.Is(err, ErrNotFound) {
			t.Errorf("purge of a message that is gone: %v, want %v", err, ErrNotFound)
		}
	}
	for e, err := range r.Entries(Partial, Place{}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Replace(Partial, e.Place, messages(NewFileID(), 4)); err != nil {
			t.Fatal(err)
		}
	}
	checkScan(t, r)
	for e, err := range r.Entries(Dead, Place{}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Purge(Dead, e.Place); err != nil {
			t.Fatal(err)
		}
	}
	checkScan(t, r)
	for _, l := range leaseAll(t, r, 4) {
		if l.UID != 7 {
			t.Errorf("%s is charged to %d", l.ID, l.UID)
		}
		if err := r.Ack(l); err != nil {
			t.Fatal(err)
		}
	}
	if sum, err := q.Stats(); err != nil || sum != (Stats{}) || len(q.users) != 0 {
		t.Errorf("left are %+v, %v, users %v", sum, err, q.users)
	}
}

// TestStage_HeldFile: a stage keeps pieces of a file in order across a restart,
// and becomes the messages that are decoded from them in one Put.
func TestStage_HeldFile(t *testing.T) {
	dir := t.TempDir()
	q, _, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	s := r.NewStage(NewFileID(), StageInfo{File: ".x", UID: 7, Held: true})
	const n = 3*stagePage + 1
	for i := range n {
		piece := Message{Body: fmt.Appendf(nil, "piece %d", i)}
		switch i % 5 {
		case 3:
			piece.Reason = "odd"
		case 4:
			piece.Partial = true
		}
		if err := s.Put(i, []Message{piece}); err != nil {
			t.Fatal(err)
		}
		other := putStage(t, r, 1) // so that the numbers are not one range
		commit(t, other)
	}
	s.SetInfo(".y", true)
	if err := s.Put(n, nil); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	q, stages, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if len(stages) != 1 || stages[0].Info() != (StageInfo{File: ".y", UID: 7, Held: true}) {
		t.Fatalf("handed back: %+v", stages)
	}
	s, i := stages[0], 0
	for m, err := range s.Entries() {
		if want := fmt.Sprintf("piece %d", i); err != nil || string(m.Body) != want {
			t.Fatalf("entry %d is %q, %v, want %q", i, m.Body, err, want)
		}
		i++
	}
	if i != n {
		t.Errorf("%d entries, want %d", i, n)
	}
	s.SetInfo("y", false)
	if err := s.Put(0, messages(s.File(), 2)); err != nil {
		t.Fatal(err)
	}
	commit(t, s)
	if r, err = q.Route("default"); err != nil {
		t.Fatal(err)
	}
	checkScan(t, r)
	if got := len(leaseAll(t, r, n+2)); got != n+2 {
		t.Errorf("leased %d, want %d", got, n+2)
	}
}

// TestStage_RenamesWhenFull: what replaces itself needs no room.
func TestStage_RenamesWhenFull(t *testing.T) {
	_, r := openQueue(t, Options{Limits: Limits{Messages: 2}})
	s := r.NewStage(NewFileID(), StageInfo{File: ".x", Held: true})
	if err := s.Put(0, messages(s.File(), 2)); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(2, messages(s.File(), 1)); !errors.Is(err, ErrFull) {
		t.Fatalf("a third message: %v, want %v", err, ErrFull)
	}
	s.SetInfo("x", false)
	if err := s.Put(0, messages(s.File(), 2)); err != nil {
		t.Fatal(err)
	}
	commit(t, s)
}

// TestStage_CommitFirst: instalments are ready in the order of their Puts, and the
// rest stays staged.
func TestStage_CommitFirst(t *testing.T) {
	_, r := openQueue(t, Options{CommitGrace: -1})
	s := putStage(t, r, 3)
	late := putStage(t, r, 1)
	if err := s.CommitFirst(2, 100); err != nil {
		t.Fatal(err)
	}
	checkScan(t, r)
	first := leaseAll(t, r, 2)
	if err := s.CommitFirst(1, 100); err != nil { // done already
		t.Fatal(err)
	}
	if got := s.Len(); got != 1 {
		t.Errorf("the stage has %d entries, want 1", got)
	}
	if err := s.Put(1, messages(s.File(), 5)[3:]); err != nil {
		t.Fatal(err)
	}
	if err := s.CommitFirst(3, 200); err != nil {
		t.Fatal(err)
	}
	commit(t, late)
	commit(t, s)
	checkScan(t, r)
	got := ids(append(first, leaseAll(t, r, 4)...))
	var want string
	for _, id := range []ID{s.File().MessageID(1), s.File().MessageID(2), s.File().MessageID(3), late.File().MessageID(1), s.File().MessageID(4), s.File().MessageID(5)} {
		want += string(id) + "\n"
	}
	if got != want {
		t.Errorf("leased\n%swant\n%s", got, want)
	}
}
