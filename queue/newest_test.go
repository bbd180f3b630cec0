package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// newestRoute opens a queue with a route that is NewestFirst.
func newestRoute(t testing.TB) (*Queue, *Route) {
	t.Helper()
	q, r := openQueue(t, Options{})
	setOptions(t, r, RouteOptions{Order: NewestFirst})
	return q, r
}

func setOptions(t testing.TB, r *Route, o RouteOptions) {
	t.Helper()
	if err := r.SetOptions(o); err != nil {
		t.Fatal(err)
	}
}

// places names messages by their file's place in a list and their line.
func places(ls []*Lease, files []FileID) []string {
	var out []string
	for _, l := range ls {
		out = append(out, fmt.Sprintf("%d-%d", slices.Index(files, l.ID.File()), l.Line))
	}
	return out
}

func appendFile(t testing.TB, r *Route, n int) FileID {
	t.Helper()
	f := NewFileID()
	if err := r.Append(messages(f, n)); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRoute_NewestFirst: the newest file goes first, its messages in their order however
// many are leased at once, and what comes meanwhile goes before all that is older.
func TestRoute_NewestFirst(t *testing.T) {
	for _, most := range []int{1, 2, 3, 100} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			q, r := newestRoute(t)
			var files []FileID
			for _, n := range []int{1, 3, 2} {
				files = append(files, appendFile(t, r, n))
			}
			var got []string
			lease := func() {
				ls, err := r.Lease(t.Context(), most)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, places(ls, files)...)
				if err := r.Ack(ls...); err != nil {
					t.Fatal(err)
				}
			}
			want := []string{"2-1", "2-2", "1-1", "1-2", "1-3", "0-1"}
			if most < 3 { // a fresh file before the rest of one that has begun
				for len(got) < 3 {
					lease()
				}
				files = append(files, appendFile(t, r, 2))
				want = slices.Insert(want, len(got), "3-1", "3-2")
			}
			for len(got) < len(want) {
				lease()
			}
			if !slices.Equal(got, want) {
				t.Errorf("leased\n%q, want\n%q", got, want)
			}
			checkScan(t, r)
			if s, err := q.Stats(); err != nil || s != (Stats{}) {
				t.Errorf("left are %+v, %v", s, err)
			}
		})
	}
}

// TestRoute_NewestComesBack: what is requeued, refused or committed late has its place
// among the files all the same, and so it is after the order has changed and back.
func TestRoute_NewestComesBack(t *testing.T) {
	_, r := newestRoute(t)
	var files []FileID
	late := putStage(t, r, 2)
	files = append(files, late.File())
	for range 3 {
		files = append(files, appendFile(t, r, 2))
	}
	ls := leaseAll(t, r, 3) // 3-1 3-2 2-1
	if err := r.Nack(ls[2], time.Now()); err != nil {
		t.Fatal(err)
	}
	until(t, "the refused message is ready", func() bool {
		s, err := r.Stats()
		if err == nil && s.Delayed > 0 {
			err = r.Hasten()
		}
		return err == nil && s.Delayed == 0
	})
	if got, want := places(leaseAll(t, r, 1), files), []string{"2-1"}; !slices.Equal(got, want) {
		t.Errorf("leased %q, want %q", got, want)
	}
	commit(t, late)
	if n := r.q.Store().LateTotal; n != 0 {
		t.Errorf("%d are late, where nothing has a place to lose", n)
	}
	r.Requeue(ls[1])
	if got, want := places(leaseAll(t, r, 2), files), []string{"3-2", "2-2"}; !slices.Equal(got, want) {
		t.Errorf("leased %q, want %q", got, want)
	}
	setOptions(t, r, RouteOptions{})
	if got, want := places(leaseAll(t, r, 1), files), []string{"0-1"}; !slices.Equal(got, want) {
		t.Errorf("in order leased %q, want %q", got, want)
	}
	setOptions(t, r, RouteOptions{Order: NewestFirst})
	if got, want := places(leaseAll(t, r, 3), files), []string{"1-1", "1-2", "0-2"}; !slices.Equal(got, want) {
		t.Errorf("leased %q, want %q", got, want)
	}
	checkScan(t, r)
}

// TestRoute_NewestDrained: what has drained at the young end is not looked through again,
// also after a restart, and nothing of the old end is swept with it.
func TestRoute_NewestDrained(t *testing.T) {
	dir := t.TempDir()
	open := func() (*Queue, *Route) {
		q, _, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := q.Route("default")
		if err != nil {
			t.Fatal(err)
		}
		setOptions(t, r, RouteOptions{Order: NewestFirst})
		return q, r
	}
	q, r := open()
	const n = 4 * sweepRows
	fill(t, r, n)
	refused := leaseAll(t, r, 10)
	drain(t, r, n/2)
	for _, l := range refused {
		if err := r.Nack(l, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Hasten(); err != nil {
		t.Fatal(err)
	}
	if err := q.tend(); err != nil {
		t.Fatal(err)
	}
	if left := r.gone.size(); left >= sweepRows {
		t.Errorf("%d rows were not swept", left)
	}
	checkScan(t, r)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	q, r = open()
	defer q.Close()
	if got := leaseAll(t, r, 10); got[0].ID.File() != refused[0].ID.File() {
		t.Errorf("the newest is %s, want one of file %s", got[0].ID, refused[0].ID.File())
	}
	if got := leaseAll(t, r, n/2-10); got[len(got)-1].ID.File() == got[0].ID.File() {
		t.Errorf("all are of file %s", got[0].ID.File())
	}
	if s, err := r.Stats(); err != nil || s.Ready != 0 || s.Leased != n/2 {
		t.Errorf("left are %+v, %v", s, err)
	}
	checkScan(t, r)
}
