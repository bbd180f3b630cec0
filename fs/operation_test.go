package fs

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"spoolfs/queue"
)

func (r *rig) operate(action Action, sel Selection) Tally {
	r.t.Helper()
	o, err := r.fs.NewOperation(action, sel)
	if err == nil {
		err = o.Run()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return o.Tally()
}

// TestOperation_Selects: route, age and reason choose what is purged, and a count
// changes nothing.
func TestOperation_Selects(t *testing.T) {
	r := newRig(t, Options{})
	const n = 600 // more than a page of the queue
	file := queue.NewFileID()
	var ms []queue.Message
	for i := range n {
		reason := []string{"not-json: at 1", "too-large"}[i%2]
		ms = append(ms, queue.Message{ID: file.MessageID(uint32(i + 1)), Ingested: time.Unix(int64(i), 0), Reason: reason, Body: []byte("b")})
	}
	if err := r.route.Append(ms); err != nil {
		t.Fatal(err)
	}
	sel := Selection{State: queue.Dead, Route: "default", Reason: "not-json", Before: time.Unix(n/2, 0)}
	for _, action := range []Action{Count, Purge} {
		got := r.operate(action, sel)
		if got.Looked != n || got.Matched != n/4 || !maps.Equal(got.Reasons, map[string]uint64{"not-json": n / 4}) {
			t.Errorf("%s: %+v", action, got)
		}
		want := map[Action]uint64{Count: 0, Purge: n / 4}[action]
		if s := r.stats(); got.Done != want || s.Dead != n-want {
			t.Errorf("%s did %d, want %d; left %+v", action, got.Done, want, s)
		}
	}
	if got := r.fs.Stats().PurgedTotal; got != n/4 {
		t.Errorf("purged in all %d", got)
	}
	if _, err := r.fs.NewOperation(Purge, Selection{State: queue.Dead, Route: "other"}); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("no such route: %v", err)
	}
	if _, err := r.fs.NewOperation(Redrive, Selection{State: queue.Pending}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("redrive what is ready: %v", err)
	}
}

// TestOperation_Redrive: as with a rename each, what was a message goes as it was,
// what never was one is decoded anew or refused, and stays then.
func TestOperation_Redrive(t *testing.T) {
	r := newRig(t, Options{})
	r.dead(300)
	file := queue.NewFileID()
	bad := func(n uint32, body string, partial bool) {
		m := queue.Message{ID: file.MessageID(n), Line: n, Body: []byte(body), Reason: "not-json", Partial: partial}
		if err := r.route.Append([]queue.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	bad(1, "garbage\n", false)
	bad(2, line("2"), false)
	bad(3, line("3")+"{", true) // its torn tail is a dead letter then
	bad(4, "{", true)
	dead := r.operate(Redrive, Selection{State: queue.Dead})
	if dead.Matched != 302 || dead.Done != 301 || dead.Refused != 1 || !strings.Contains(dead.Refusal, "not-json") {
		t.Errorf("of the dead: %+v", dead)
	}
	partial := r.operate(Redrive, Selection{State: queue.Partial})
	if partial.Matched != 2 || partial.Done != 1 || partial.Refused != 1 {
		t.Errorf("of the partial: %+v", partial)
	}
	if got, want := r.bodies(), strings.Repeat("body", 300)+line("2")+line("3"); got != want {
		t.Errorf("published %q", got)
	}
	if s := r.stats(); s.Dead != 2 || s.Partial != 1 || r.fs.Stats().RedrivenTotal != 302 {
		t.Errorf("left: %+v, %+v", s, r.fs.Stats())
	}
	if got := r.operate(Purge, Selection{State: queue.Partial}); got.Done != 1 || r.stats().Partial != 0 {
		t.Errorf("purge: %+v, left %+v", got, r.stats())
	}
}

// TestOperation_LeavesLeased: what is on its way stays, and is neither done nor
// refused.
func TestOperation_LeavesLeased(t *testing.T) {
	r := newRig(t, Options{})
	f := queue.NewFileID()
	if err := r.route.Append([]queue.Message{{ID: f.MessageID(1)}, {ID: f.MessageID(2)}}); err != nil {
		t.Fatal(err)
	}
	leased, err := r.route.Lease(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	got := r.operate(Purge, Selection{State: queue.Pending})
	if got.Matched != 2 || got.Done != 1 || got.Refused != 0 || len(got.Reasons) != 0 {
		t.Errorf("%+v", got)
	}
	if err := r.route.Ack(leased...); err != nil {
		t.Errorf("the leased message went: %v", err)
	}
}

// TestOperation_ManyReasons: the reasons that are told apart are bounded.
func TestOperation_ManyReasons(t *testing.T) {
	r := newRig(t, Options{})
	for i := range 2 * maxReasons {
		m := queue.Message{ID: queue.NewFileID().MessageID(1), Reason: fmt.Sprintf("r%d: x", i)}
		if err := r.route.Append([]queue.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	got := r.operate(Count, Selection{State: queue.Dead})
	if len(got.Reasons) != maxReasons+1 || got.Reasons["..."] != maxReasons {
		t.Errorf("%d reasons, %d others", len(got.Reasons), got.Reasons["..."])
	}
}

// TestStatusTree_PartialWithHead: a route shows its partial files with what is
// known of them.
func TestStatusTree_PartialWithHead(t *testing.T) {
	r := newRig(t, Options{})
	m := queue.Message{ID: queue.NewFileID().MessageID(1), Line: 1, File: "f", Reason: "torn: x", Body: []byte("{"), Partial: true, Ingested: time.Unix(1, 0)}
	if err := r.route.Append([]queue.Message{m}); err != nil {
		t.Fatal(err)
	}
	dir := "routes/default/partial"
	if got := r.content(dir + "/" + string(m.ID)); !strings.Contains(got, "\nreason torn: x\n") || !strings.HasSuffix(got, "\n\n{") {
		t.Errorf("content is %q", got)
	}
	if got := r.openDir(dir).all(); len(got) != 3 || got[2] != string(m.ID) {
		t.Errorf("listed %q", got)
	}
	if st := r.remove(dir, string(m.ID)); !st.Ok() || r.stats().Partial != 0 {
		t.Errorf("remove: %v, left %+v", st, r.stats())
	}
}
