package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestRoute_HandOver: what follows enters its routes with the end of its parents, in
// their order, and its IDs tell whose it is.
func TestRoute_HandOver(t *testing.T) {
	q, r := openQueue(t, Options{})
	var next []*Route
	for _, name := range []string{"next", "alerts"} {
		n, err := q.Route(name)
		if err != nil {
			t.Fatal(err)
		}
		next = append(next, n)
	}
	s := putStage(t, r, 3)
	commit(t, s)
	ls := leaseAll(t, r, 3)
	follow := func(to *Route, l *Lease) Follow { return Follow{to, Message{Body: append([]byte("then "), l.Body...)}} }
	all := []Handover{
		{Lease: ls[0], Follow: []Follow{follow(next[0], ls[0]), follow(next[1], ls[0]), follow(r, ls[0])}},
		{Lease: ls[1], Reason: "refused", Follow: []Follow{follow(next[1], ls[1])}},
		{Lease: ls[2], Follow: []Follow{{next[0], Message{Reason: "expired"}}}},
	}
	if err := r.HandOver(all...); err != nil {
		t.Fatal(err)
	}
	if err := r.HandOver(all[1]); !errors.Is(err, ErrNotLeased) {
		t.Errorf("second HandOver: %v", err)
	}
	for _, route := range append(next, r) {
		checkScan(t, route)
	}
	id := func(line uint32, route string) ID { return s.File().MessageID(line) + ID("/"+route) }
	a, b, c := leaseAll(t, next[0], 1), leaseAll(t, next[1], 2), leaseAll(t, r, 1)
	if a[0].ID != id(1, "next") || string(a[0].Body) != "then line 1" || a[0].UID != 7 || a[0].Attempts != 0 {
		t.Errorf("the follow-up is %+v", a[0].Message)
	}
	if got := []ID{b[0].ID, b[1].ID, c[0].ID}; !slices.Equal(got, []ID{id(1, "alerts"), id(2, "alerts"), id(1, "default")}) {
		t.Errorf("follow-ups are %q", got)
	}
	if got := listed(t, r, Dead, Place{}); !slices.Equal(got, []ID{s.File().MessageID(2)}) {
		t.Errorf("dead are %q", got)
	}
	if got := listed(t, next[0], Dead, Place{}); !slices.Equal(got, []ID{id(3, "next")}) {
		t.Errorf("dead in the next route are %q", got)
	}
	for i, ls := range [][]*Lease{a, b, c} {
		if err := append(next, r)[i].Ack(ls...); err != nil {
			t.Fatal(err)
		}
	}
	for _, route := range append(next, r) {
		if _, err := route.PurgeAll(Dead, func(*Message) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	if sum, err := q.Stats(); err != nil || sum != (Stats{}) || len(q.users) != 0 {
		t.Errorf("left are %+v, %v, users %v", sum, err, q.users)
	}
}

// TestRoute_HandOverCrash cuts the log of a chain of three routes at each place, as a
// crash does, and goes on with what is left: no message is lost, none is in two
// places of its way, and a failure and what follows from it are both there or neither.
// It proves Q10.
func TestRoute_HandOverCrash(t *testing.T) {
	disk, log, begin := drainedChain(t)
	const step = 24 // bytes, shorter than any record
	left := map[int]bool{}
	for size := begin; size <= len(log.text); size += step {
		crashed := disk.CrashClone(vfs.CrashCloneCfg{})
		writeContent(t, crashed, log.path, log.text[:size])
		after := newChain(t, crashed)
		left[after.drain()] = true
		after.check()
		after.q.Close()
	}
	// Writes that come fast share a record, so that not each number is there.
	if !left[0] || len(left) < 2 {
		t.Errorf("after the crashes so many steps were left: %v; want none after some, and some after others", left)
	}
}

// drainedChain gives the disk of a chain that was drained, its log, and where in it
// that began.
func drainedChain(t *testing.T) (disk *vfs.MemFS, log writtenLog, begin int) {
	t.Helper()
	for {
		fs := vfs.NewCrashableMem()
		c := newChain(t, fs)
		c.append(c.a, chainFile)
		before := logOf(t, fs)
		if steps := c.drain(); steps < 2*chainLength {
			t.Fatalf("%d steps", steps)
		}
		c.append(c.other, NewFileID()) // has the log written
		c.check()
		// What is done to the disk from now on must not be in it.
		disk = fs.CrashClone(vfs.CrashCloneCfg{})
		c.q.Close()
		if log = logOf(t, disk); log.path == before.path {
			return disk, log, len(before.text)
		}
		t.Log("the housekeeping has begun another log meanwhile: once more")
	}
}

// writtenLog is the log that the database writes, without the zeroes ahead.
type writtenLog struct{ path, text string }

func logOf(t *testing.T, fs vfs.FS) writtenLog {
	t.Helper()
	names, err := fs.List("store/db")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".log") })
	path := "store/db/" + slices.Max(names)
	return writtenLog{path, strings.TrimRight(contentOf(t, fs, path), "\x00")}
}

// chain is a queue with three routes: what is confirmed in a goes to b and c, and what
// is confirmed or fails in b to c as well.
type chain struct {
	t              *testing.T
	q              *Queue
	a, b, c, other *Route
}

func newChain(t *testing.T, fs vfs.FS) *chain {
	t.Helper()
	q, _, err := Open("store", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	if d := q.Damage(); d != (DamageReport{}) {
		t.Fatalf("a crash is taken for damage: %+v", d)
	}
	c := &chain{t: t, q: q}
	for _, r := range []struct {
		name  string
		route **Route
	}{{"a", &c.a}, {"b", &c.b}, {"c", &c.c}, {"other", &c.other}} {
		if *r.route, err = q.Route(r.name); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// chainFile is that of the messages that enter a chain, and chainLength their number.
var chainFile = FileID{42}

const chainLength = 4

func (c *chain) append(r *Route, f FileID) {
	c.t.Helper()
	if err := r.Append(messages(f, chainLength)); err != nil {
		c.t.Fatal(err)
	}
}

// drain empties the routes a and b, message by message, and returns how many steps it
// took.
func (c *chain) drain() (steps int) {
	c.t.Helper()
	for _, route := range []*Route{c.a, c.b} {
		for _, l := range leaseAll(c.t, route, len(listed(c.t, route, Pending, Place{}))) {
			steps++
			h := Handover{Lease: l, Follow: []Follow{{c.b, *l.Message}, {c.c, *l.Message}}}
			if route == c.b {
				h = Handover{Lease: l, Follow: []Follow{{c.c, *l.Message}}}
				if l.Line%2 == 0 {
					h.Reason = "refused"
				}
			}
			if err := route.HandOver(h); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	return steps
}

// check compares what is in the routes with what has to be there in the end.
func (c *chain) check() {
	c.t.Helper()
	var want, wantDead []ID
	for line := uint32(1); line <= chainLength; line++ {
		id := chainFile.MessageID(line)
		want = append(want, id+"/c", id+"/b/c")
		if line%2 == 0 {
			wantDead = append(wantDead, id+"/b")
		}
	}
	got := listed(c.t, c.c, Pending, Place{})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.t.Fatalf("in the last route are\n%s\nwant\n%s", idLines(got), idLines(want))
	}
	if got := listed(c.t, c.b, Dead, Place{}); !slices.Equal(got, wantDead) {
		c.t.Fatalf("dead are\n%s\nwant\n%s", idLines(got), idLines(wantDead))
	}
	for _, r := range []*Route{c.a, c.b, c.c} {
		checkScan(c.t, r)
	}
}

func idLines(ids []ID) string { return strings.Trim(fmt.Sprint(ids), "[]") }
