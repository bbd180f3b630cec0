package publisher

import (
	"sync/atomic"
	"testing"
	"time"

	"spoolfs/queue"
)

// TestPublisher_RetryForgives: what an operator has put right is tried at once
// when told so, and not delayed anew as long as the exchange is remembered as
// missing (P8).
func TestPublisher_RetryForgives(t *testing.T) {
	b := &broker{}
	var there atomic.Bool
	b.on = func(s *scripted, p Publication) error {
		if p.Exchange == "xs_other" && !there.Load() {
			s.end(lazyFault(p.Exchange))
			return nil
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	r := newRig(t, b, Options{LazyWait: time.Hour, Allowed: []string{"xs_other"}})
	r.appendNamed(20, "", "xs_other")
	r.until("those delayed", func(q queue.Stats, p Stats) bool { return p.ConfirmedTotal == 10 && q.Delayed == 10 })
	there.Store(true)
	r.p.Retry()
	if err := r.route.Hasten(); err != nil {
		t.Fatal(err)
	}
	r.untilEmpty()
}

// TestPublisher_NamedExchangeHangs: when a broker never confirms what goes to an
// exchange that records have named, and confirms all else, those wait, and the
// route does not wait for them again and again (P8).
func TestPublisher_NamedExchangeHangs(t *testing.T) {
	b := &broker{}
	b.on = func(s *scripted, p Publication) error {
		if p.Exchange != "xs_hangs" {
			s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		}
		return nil
	}
	r := newRig(t, b, Options{Window: 16, ConfirmTimeout: 200 * time.Millisecond, Allowed: []string{"xs_hangs"}, LazyWait: time.Hour})
	r.appendNamed(90, "", "", "xs_hangs")
	r.until("all settled", func(q queue.Stats, p Stats) bool {
		return p.ConfirmedTotal >= 60 && q.Delayed == 30 && q.Ready+q.Leased == 0
	})
}

// TestPublisher_SilentBroker: a broker that confirms nothing is silent, whatever
// records have named, and delays no message.
func TestPublisher_SilentBroker(t *testing.T) {
	b := &broker{on: func(*scripted, Publication) error { return nil }}
	r := newRig(t, b, Options{ConfirmTimeout: 20 * time.Millisecond, Allowed: []string{"xs_other"}})
	r.appendNamed(20, "", "xs_other")
	r.until("silent three times", func(q queue.Stats, p Stats) bool {
		if q.Delayed > 0 {
			t.Fatalf("%d are delayed: %+v", q.Delayed, p)
		}
		return p.SessionsTotal > 3 && p.LastCause == Silent
	})
}

// TestFlights_Handing: a verdict is not waited for before the session has the
// message: over a slow link a large one takes longer than a confirm may (P5).
func TestFlights_Handing(t *testing.T) {
	start := time.Now()
	later := start.Add(time.Minute)
	var f flights
	small := f.takeOff(&queue.Lease{Message: &queue.Message{}}, start)
	large := f.takeOff(&queue.Lease{Message: &queue.Message{Body: make([]byte, largeBody)}}, start)
	if got := f.oldest(later); got != start {
		t.Errorf("behind a small message: since %v, want %v", got, start)
	}
	f.land(small)
	if got := f.oldest(later); got != later || len(f.overdue(later)) > 0 {
		t.Errorf("while it is handed over: since %v, want %v; %d overdue", got, later, len(f.overdue(later)))
	}
	f.handed(large, later)
	if got := f.oldest(later.Add(time.Minute)); got != later {
		t.Errorf("when it has been handed over: since %v, want %v", got, later)
	}
	f.land(large)
	f.handed(large, later)
	if f.len() != 0 {
		t.Errorf("%d in flight", f.len())
	}
}
