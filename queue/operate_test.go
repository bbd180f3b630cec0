package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// checkScan compares counters with a scan.
func checkScan(t testing.TB, r *Route) {
	t.Helper()
	if err := scanCounters(r); err != nil {
		t.Error(err)
	}
}

// appendDead stores n dead letters with the reason "odd" or "even".
func appendDead(t testing.TB, r *Route, n int) []Message {
	t.Helper()
	ms := messages(NewFileID(), n)
	for i := range ms {
		ms[i].Reason, ms[i].UID = []string{"even", "odd"}[i%2], 7
	}
	if err := r.Append(ms); err != nil {
		t.Fatal(err)
	}
	return ms
}

// TestRoute_Redrive: the chosen dead letters are ready again, with their IDs.
func TestRoute_Redrive(t *testing.T) {
	_, r := openQueue(t, Options{})
	const n = 3*pageSize + 1
	ms := appendDead(t, r, n)
	got, err := r.Redrive(func(m *Message) bool {
		odd := m.Reason == "odd"
		m.Body = append(m.Body, " again"...)
		return odd
	})
	if want := n / 2; err != nil || got != want {
		t.Fatalf("redrove %d, %v, want %d", got, err, want)
	}
	checkScan(t, r)
	for i, l := range leaseAll(t, r, n/2) {
		want := ms[2*i+1]
		if l.ID != want.ID || l.Reason != "" || string(l.Body) != string(want.Body)+" again" {
			t.Fatalf("message %d is %+v, want %s", i, l.Message, want.ID)
		}
	}
	if s, _ := r.Stats(); s.Dead != n-n/2 || s.Leased != n/2 {
		t.Errorf("stats are %+v", s)
	}
}

// TestRoute_Purge: what matches goes, what is leased or staged stays.
func TestRoute_Purge(t *testing.T) {
	q, r := openQueue(t, Options{CommitGrace: -1})
	appendDead(t, r, 2*pageSize)
	if n, err := r.PurgeAll(Dead, func(m *Message) bool { return m.Reason == "odd" }); err != nil || n != pageSize {
		t.Errorf("purged %d dead letters, %v, want %d", n, err, pageSize)
	}
	if n, err := r.PurgeAll(Dead, func(*Message) bool { return true }); err != nil || n != pageSize {
		t.Errorf("purged %d dead letters, %v, want %d", n, err, pageSize)
	}
	staged := putStage(t, r, 2)
	if err := r.Append(messages(NewFileID(), 2*pageSize)); err != nil {
		t.Fatal(err)
	}
	leased := leaseAll(t, r, 10)
	n, err := r.PurgeAll(Pending, func(m *Message) bool { return !strings.HasSuffix(string(m.ID), "0") })
	if want := 2*pageSize - 10 - 2*pageSize/10 + 1; err != nil || n != want {
		t.Errorf("purged %d messages, %v, want %d", n, err, want)
	}
	checkScan(t, r)
	if err := r.Ack(leased...); err != nil {
		t.Fatal(err)
	}
	commit(t, staged)
	rest, _ := r.Stats()
	if err := r.Ack(leaseAll(t, r, int(rest.Ready))...); err != nil {
		t.Fatal(err)
	}
	if sum, err := q.Stats(); err != nil || sum != (Stats{}) || len(q.users) != 0 {
		t.Errorf("left are %+v, %v, users %v", sum, err, q.users)
	}
}

// TestRoute_Delayed: delayed messages are listed and come back in the order in
// which they are due.
func TestRoute_Delayed(t *testing.T) {
	_, r := openQueue(t, Options{})
	if err := r.Append(messages(NewFileID(), 3)); err != nil {
		t.Fatal(err)
	}
	due := time.Now().Add(time.Hour)
	var want []string
	for i, l := range leaseAll(t, r, 3) {
		if err := r.Nack(l, due.Add(-time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
		want = append([]string{string(l.ID)}, want...)
	}
	var got []string
	for m, err := range r.Delayed() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(m.ID))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("delayed are %v, want %v", got, want)
	}
}

// TestQueue_Limits: each limit is refused with an error of its own, before
// anything is written, and room that is made is used.
func TestQueue_Limits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits Limits
		fill   uint32 // who fills
		uid    uint32 // who is refused
		want   error
	}{
		{"messages", Limits{Messages: 4}, 0, 0, ErrFull},
		{"messages of others", Limits{Messages: 4}, 0, 8, ErrFull},
		{"bytes", Limits{Bytes: 200}, 0, 0, ErrFull},
		{"share of messages", Limits{Messages: 8}, 7, 7, ErrUserShare},
		{"share of bytes", Limits{Bytes: 400}, 7, 7, ErrUserShare},
		{"floor", Limits{FreeFloor: 1 << 60}, 0, 0, ErrDiskFull},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, r := openQueue(t, Options{Limits: tt.limits})
			put := func(uid uint32) error {
				f := NewFileID()
				s := r.NewStage(f, StageInfo{UID: uid})
				err := s.Put(0, messages(f, 1))
				if e := s.Commit(); e != nil {
					t.Fatal(e)
				}
				return err
			}
			n := 0
			for ; n < 100 && put(tt.fill) == nil; n++ {
				continue
			}
			if n == 100 || n == 0 && tt.want != ErrDiskFull {
				t.Fatalf("took %d messages", n)
			}
			if err := put(tt.uid); !errors.Is(err, tt.want) {
				t.Errorf("Put over the limit: %v, want %v", err, tt.want)
			}
			if err := r.Admit(tt.uid, 1, 50); !errors.Is(err, tt.want) {
				t.Errorf("Admit over the limit: %v, want %v", err, tt.want)
			}
			if tt.want == ErrUserShare {
				for _, other := range []uint32{9, 0} {
					if err := put(other); err != nil {
						t.Errorf("Put of user %d: %v", other, err)
					}
				}
			}
			if n > 0 {
				if err := r.Ack(leaseAll(t, r, n)...); err != nil {
					t.Fatal(err)
				}
				if err := put(tt.uid); err != nil {
					t.Errorf("Put after room was made: %v", err)
				}
			}
			checkScan(t, r)
		})
	}
}

// TestQueue_UsersSurviveRestart: shares hold across restarts.
func TestQueue_UsersSurviveRestart(t *testing.T) {
	dir := t.TempDir()
	q, _, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	commit(t, putStage(t, r, 3))
	appendDead(t, r, 2)
	if err := r.Ack(leaseAll(t, r, 1)...); err != nil {
		t.Fatal(err)
	}
	want := q.users[7]
	if want.count != 4 || q.stored != want {
		t.Fatalf("user 7 has %+v of %+v", want, q.stored)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	q, _, err = Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if got := q.users[7]; got != want || q.stored != want {
		t.Errorf("after the restart user 7 has %+v of %+v, want %+v", got, q.stored, want)
	}
}

// TestQueue_LimitsChange: limits that are lower or higher than before touch
// nothing that is stored (D12).
func TestQueue_LimitsChange(t *testing.T) {
	dir := t.TempDir()
	stored := messages(NewFileID(), 100)
	for _, step := range []struct {
		limit uint64
		add   []Message
		want  error
	}{
		{0, stored, nil},
		{10, messages(NewFileID(), 1), ErrFull},
		{1000, messages(NewFileID(), 1), nil},
	} {
		q, _, err := Open(dir, Options{Limits: Limits{Messages: step.limit}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := q.Route("default")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Append(step.add); !errors.Is(err, step.want) {
			t.Errorf("append with a limit of %d: %v, want %v", step.limit, err, step.want)
		}
		checkScan(t, r)
		if got := listed(t, r, Pending, Place{}); !slices.Equal(got[:len(stored)], messageIDs(stored)) {
			t.Errorf("with a limit of %d there are %d messages", step.limit, len(got))
		}
		if step.want != nil { // what is stored leaves as ever
			if err := r.Ack(leaseAll(t, r, 5)...); err != nil {
				t.Fatal(err)
			}
			stored = stored[5:]
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestQueue_RestartRepeatsNothing: what was settled before a clean stop does not
// come back (D16), and what was not is all there (D13).
func TestQueue_RestartRepeatsNothing(t *testing.T) {
	dir := t.TempDir()
	ms := messages(NewFileID(), 50)
	for i := 0; i < len(ms); i += 10 {
		q, _, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := q.Route("default")
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := r.Append(ms); err != nil {
				t.Fatal(err)
			}
		}
		if got := listed(t, r, Pending, Place{}); !slices.Equal(got, messageIDs(ms[i:])) {
			t.Errorf("after %d acks there are %d messages", i, len(got))
		}
		leases := leaseAll(t, r, min(20, len(ms)-i)) // of which ten are settled
		if err := r.Ack(leases[:10]...); err != nil {
			t.Fatal(err)
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRoute_ReplaceAllEnds: what is replaced by what is in the same state again
// is not met for ever.
func TestRoute_ReplaceAllEnds(t *testing.T) {
	_, r := openQueue(t, Options{})
	const n = 2*pageSize + 1
	appendDead(t, r, n)
	asked := 0
	replaced, err := r.ReplaceAll(Dead, func(m *Message) ([]Message, bool) {
		if asked++; asked > 10*n {
			return nil, false
		}
		return []Message{*m}, true
	})
	if err != nil || replaced < n || replaced >= n+pageSize {
		t.Errorf("replaced %d of %d, %v", replaced, n, err)
	}
	if s, _ := r.Stats(); s.Dead != n {
		t.Errorf("stats are %+v", s)
	}
	checkScan(t, r)
}

// TestRoute_PurgeWhatIsAcked: a message whose Ack is submitted, and not applied yet, is
// not removed once more, and not counted twice.
func TestRoute_PurgeWhatIsAcked(t *testing.T) {
	q, r := openQueue(t, Options{})
	if err := r.Append(messages(NewFileID(), 2)); err != nil {
		t.Fatal(err)
	}
	l := leaseAll(t, r, 1)[0]
	q.engine.committing.Lock() // nothing is applied now
	acked, purged, asked := make(chan error), make(chan error, 1), make(chan ID, 2)
	go func() { acked <- r.Ack(l) }()
	for settled := false; !settled; time.Sleep(time.Millisecond) {
		q.mu.Lock()
		settled = l.settled
		q.mu.Unlock()
	}
	n := 0
	go func() {
		var err error
		n, err = r.PurgeAll(Pending, func(m *Message) bool {
			asked <- m.ID
			return true
		})
		purged <- err
	}()
	select {
	case id := <-asked:
		t.Errorf("the purge asks about %s before it can know that %s is gone", id, l.ID)
	case err := <-purged:
		purged <- err
	case <-time.After(200 * time.Millisecond): // without the barrier it asks at once
	}
	q.engine.committing.Unlock()
	if err := errors.Join(<-acked, <-purged); err != nil || n != 1 {
		t.Errorf("purged %d, %v, want 1", n, err)
	}
	checkScan(t, r)
}
