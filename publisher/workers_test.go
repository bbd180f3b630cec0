package publisher

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"spoolfs/queue"
)

// TestPublisher_WorkerHangs (P14): a session whose broker does not answer keeps what it
// has in flight from going out no longer than ConfirmTimeout, and the others go on
// meanwhile.
func TestPublisher_WorkerHangs(t *testing.T) {
	b := &broker{}
	var mu sync.Mutex
	var silent *scripted
	held := 0
	b.on = func(s *scripted, p Publication) error {
		mu.Lock()
		defer mu.Unlock()
		if silent == nil {
			silent = s
		}
		if s == silent {
			held++
			return nil // no verdict, ever
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	const timeout = 3 * time.Second
	r := newRig(t, b, Options{Workers: 2, Window: 8, ConfirmTimeout: timeout})
	start := time.Now()
	r.append(100)
	r.until("all but what hangs", func(q queue.Stats, p Stats) bool {
		mu.Lock()
		defer mu.Unlock()
		return q.Ready == 0 && int(q.Leased) == held && held > 0 || p.RequeuedTotal > 0
	})
	if s := r.p.Stats(); s.RequeuedTotal > 0 {
		t.Logf("after %s, and so too late to tell who has waited: %+v", time.Since(start), s)
	} else if s.State != Connected || s.ConfirmedTotal != uint64(100-held) || s.InFlight != held {
		t.Errorf("%d hang, stats are %+v", held, s)
	}
	r.untilEmpty()
	s := r.p.Stats()
	if s.RequeuedTotal != uint64(held) || s.ConfirmedTotal != 100 || !strings.Contains(s.LastError, "no verdict") {
		t.Errorf("%d have hung, stats are %+v", held, s)
	}
}

// TestPublisher_WorkersShare: the workers take parts of the route, each message once, and
// pause, go on, change their number and stop together.
func TestPublisher_WorkersShare(t *testing.T) {
	b := &broker{}
	var mu sync.Mutex
	bySession := map[*scripted]int{}
	var begun sync.WaitGroup
	begun.Add(3)
	b.on = func(s *scripted, p Publication) error {
		mu.Lock()
		bySession[s]++
		first := bySession[s] == 1 && len(bySession) <= 3
		mu.Unlock()
		if first { // until the others have theirs
			begun.Done()
			begun.Wait()
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	opts := Options{Workers: 3, Window: 10}
	r := newRig(t, b, opts)
	r.append(300)
	r.untilEmpty()
	if s := r.p.Stats(); s.ConfirmedTotal != 300 || s.SessionsTotal != 3 || s.Window != 9 || len(bySession) != 3 || len(b.published) != 300 {
		t.Errorf("%d sessions, %d published, stats are %+v", len(bySession), len(b.published), s)
	}
	r.p.Pause()
	r.until("a pause", func(_ queue.Stats, p Stats) bool { return p.State == Paused })
	r.append(10)
	r.p.Resume()
	r.untilEmpty()
	for i, n := range []int{1, 4, 2} {
		next := r.p.opts
		next.Workers, next.Window = n, 4
		if err := r.p.Reconfigure(next); err != nil {
			t.Fatal(err)
		}
		r.until("the new size", func(_ queue.Stats, p Stats) bool { return p.Window == 4 })
		r.append(50)
		r.untilEmpty()
		if s := r.p.Stats(); s.ConfirmedTotal != uint64(310+50*(i+1)) {
			t.Errorf("with %d workers stats are %+v", n, s)
		}
	}
}

// TestStats_Add: all totals are summed.
func TestStats_Add(t *testing.T) {
	now := time.Now()
	a := Stats{State: Idle, Failures: map[Failure]uint64{}}
	b := Stats{State: Waiting, AwaySince: now, LastError: "b", LastErrorTime: now, Failures: map[Failure]uint64{{Lazy, Lost}: 2}}
	v := reflect.ValueOf(&b).Elem()
	for i := range v.NumField() {
		if strings.HasSuffix(v.Type().Field(i).Name, "Total") {
			v.Field(i).SetUint(3)
		}
	}
	a.add(b)
	a.add(b)
	sum := reflect.ValueOf(a)
	for i := range sum.NumField() {
		if name := sum.Type().Field(i).Name; strings.HasSuffix(name, "Total") && sum.Field(i).Uint() != 6 {
			t.Errorf("%s is %d, want 6", name, sum.Field(i).Uint())
		}
	}
	if a.State != Waiting || !a.AwaySince.Equal(now) || a.LastError != "b" || a.Failures[Failure{Lazy, Lost}] != 4 {
		t.Errorf("the sum is %+v", a)
	}
	if a.add(Stats{State: Connected}); a.State != Connected || !a.AwaySince.IsZero() {
		t.Errorf("with one that works it is %+v", a)
	}
}

// TestPublisher_WorkersEnd: when the queue closes all workers end, and Run says so.
func TestPublisher_WorkersEnd(t *testing.T) {
	q, _, err := queue.Open(t.TempDir(), queue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	route, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Options{Route: route, Dial: (&broker{}).Dial, Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Run(t.Context()) }()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, queue.ErrClosed) {
		t.Errorf("Run: %v, want %v", err, queue.ErrClosed)
	}
}
