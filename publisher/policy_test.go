package publisher

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"spoolfs/queue"
)

// TestPolicies is the verdict table of the design.
func TestPolicies(t *testing.T) {
	for class, want := range map[Class]policy{
		Retriable: {again, reconnects}, Refused: {delayed, slows}, Lazy: {again, waits}, LazyMessage: {delayed, goesOn},
		Invalid: {dead, goesOn}, Unroutable: {gone, goesOn}, Expired: {dead, goesOn},
	} {
		if got := (&Options{Returned: ReturnedCount}).policyOf(class); got != want {
			t.Errorf("class %d: %v, want %v", class, got, want)
		}
	}
	for cause := range advice {
		if cause.Advice() == "" {
			t.Errorf("no advice for %q", cause)
		}
	}
}

// TestPublisher_FullQueueDelaysOneWindow proves P7: while a queue at the broker
// is full, no more than a window of messages become delayed, and when it is not
// everything is delivered, the rest in order.
func TestPublisher_FullQueueDelaysOneWindow(t *testing.T) {
	const window, messages = 16, 200
	b := &broker{}
	var full atomic.Bool
	var nacks atomic.Int64
	full.Store(true)
	b.on = func(s *scripted, p Publication) error {
		v := Verdict{Tag: p.Tag, Outcome: Confirmed}
		if full.Load() {
			v.Outcome = Rejected
			nacks.Add(1)
		}
		s.say(v)
		return nil
	}
	r := newRig(t, b, Options{Window: window, RetryMax: 4 * time.Millisecond})
	r.append(messages)
	r.until("many refusals", func(q queue.Stats, p Stats) bool {
		if q.Delayed+q.Leased > window {
			t.Fatalf("%d delayed and %d leased, want at most a window of %d", q.Delayed, q.Leased, window)
		}
		return nacks.Load() > 5*window && p.State == Slowed && p.LastCause == Rejecting
	})
	b.mu.Lock()
	b.published = nil
	b.mu.Unlock()
	full.Store(false)
	r.untilEmpty()
	if s := r.p.Stats(); s.ConfirmedTotal != messages || s.Window != window || s.State != Connected {
		t.Errorf("stats are %+v", s)
	}
	wantFewOutOfOrder(t, b.published, window)
}

// wantFewOutOfOrder checks that all but most messages are in the order of their
// lines.
func wantFewOutOfOrder(t *testing.T, ids []queue.ID, most int) {
	t.Helper()
	last, late := 0, 0
	for _, id := range ids {
		var line int
		fmt.Sscanf(string(id)[33:], "%d", &line)
		if line < last {
			late++
		}
		last = max(last, line)
	}
	if late > most {
		t.Errorf("%d messages out of order, want at most %d", late, most)
	}
}

// lazyFault is what a broker says of an exchange.
func lazyFault(exchange string) error {
	text := fmt.Sprintf("404 no exchange '%s' in vhost '/'", exchange)
	return &Fault{Class: Lazy, Cause: ExchangeMissing, Culprit: true, Err: errors.New(text),
		About: func(e string) bool { return strings.Contains(text, "'"+e+"' in vhost '/'") }}
}

// appendNamed stores n messages that name exchanges by turns.
func (r *rig) appendNamed(n int, exchanges ...string) {
	r.t.Helper()
	f := queue.NewFileID()
	ms := make([]queue.Message, n)
	for i := range ms {
		ms[i] = queue.Message{
			ID: f.MessageID(uint32(i + 1)), Line: uint32(i + 1), Ingested: time.Now(),
			Exchange: exchanges[i%len(exchanges)],
		}
	}
	if err := r.route.Append(ms); err != nil {
		r.t.Fatal(err)
	}
}

// TestPublisher_OwnExchangeMissing proves P8: the route waits, no message is
// delayed or lost, and Retry ends the wait.
func TestPublisher_OwnExchangeMissing(t *testing.T) {
	b := &broker{}
	var missing atomic.Bool
	missing.Store(true)
	b.on = func(s *scripted, p Publication) error {
		if missing.Load() {
			s.end(lazyFault(p.Exchange))
			return nil
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	r := newRig(t, b, Options{Window: 16, LazyWait: time.Hour})
	r.append(50)
	r.until("waiting", func(q queue.Stats, p Stats) bool {
		return p.State == Waiting && time.Until(p.NextAttempt) > 20*time.Minute && q.Ready == 50 && q.Delayed == 0
	})
	if s := r.p.Stats(); s.LastCause != ExchangeMissing || !strings.Contains(s.LastAdvice, "make the exchange") {
		t.Errorf("stats are %+v", s)
	}
	missing.Store(false)
	r.p.Retry()
	r.untilEmpty()
	if s := r.p.Stats(); s.ConfirmedTotal != 50 {
		t.Errorf("stats are %+v", s)
	}
}

// TestPublisher_NamedExchangeMissing proves P8: an exchange that records name
// delays only them, costs no more than one session, and stops nobody; not even
// with a name that contains what the broker says of the route's own.
func TestPublisher_NamedExchangeMissing(t *testing.T) {
	for _, name := range []string{"missing", "xs_example' in vhost '/"} {
		t.Run(name, func(t *testing.T) {
			b := &broker{}
			b.on = func(s *scripted, p Publication) error {
				if p.Exchange == name {
					s.end(lazyFault(name))
					return nil
				}
				s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
				return nil
			}
			r := newRig(t, b, Options{Window: 16, Allowed: []string{"missing", "xs_*", "xs_*/", "good"}})
			r.appendNamed(90, "", name, "good", "forbidden", "", "xs_example")
			r.until("all settled", func(q queue.Stats, p Stats) bool {
				return p.ConfirmedTotal == 60 && q.Delayed == 30 && q.Ready+q.Leased == 0
			})
			if s := r.p.Stats(); s.SessionsTotal != 2 || s.RefusedTotal != 30 || s.State != Connected {
				t.Errorf("stats are %+v", s)
			}
		})
	}
}

// TestRun_Accused: of the exchanges in flight for which the broker's words fit it
// is the longest, wherever it stands.
func TestRun_Accused(t *testing.T) {
	const trick = "xs_example' in vhost '/"
	r := &run{p: &Publisher{exchanges: exchanges{own: []string{"xs_example"}}}}
	var f *Fault
	for _, c := range []struct {
		said   string
		flying []string
		want   string
	}{
		{"xs_example", []string{"", "other", trick}, "xs_example"},
		{trick, []string{"", "other", trick}, trick},
		{trick, []string{trick, ""}, trick},
		{"third", []string{"", "other"}, ""},
	} {
		var flying []*queue.Lease
		for _, e := range c.flying {
			flying = append(flying, &queue.Lease{Message: &queue.Message{Exchange: e}})
		}
		if !errors.As(lazyFault(c.said), &f) {
			t.Fatal("no fault")
		}
		if got, about := r.accused(f, flying); got != c.want || about != (c.want != "") {
			t.Errorf("%s of %q: got %q, want %q", c.said, c.flying, got, c.want)
		}
	}
}

// TestPublisher_RefusedKeyStandsAlone: what the broker refuses without a word
// of an exchange is searched for, and delayed alone.
func TestPublisher_RefusedKeyStandsAlone(t *testing.T) {
	b := &broker{}
	b.on = func(s *scripted, p Publication) error {
		if strings.HasSuffix(string(p.Message.ID), "-7") {
			s.end(&Fault{Class: Lazy, Cause: ExchangeRefused, Culprit: true, Err: errors.New("403 topic")})
			return nil
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	r := newRig(t, b, Options{Window: 16})
	r.append(40)
	r.until("one delayed", func(q queue.Stats, p Stats) bool {
		return p.ConfirmedTotal == 39 && q.Delayed == 1 && q.Ready+q.Leased == 0
	})
}

// TestPublisher_Returned: what has no queue is counted, and then done, delayed
// or set aside as configured (B7).
func TestPublisher_Returned(t *testing.T) {
	for _, c := range []struct {
		policy        Returned
		delayed, dead uint64
	}{{ReturnedCount, 0, 0}, {ReturnedRetry, 1, 0}, {ReturnedDead, 0, 1}} {
		t.Run(string(c.policy), func(t *testing.T) {
			b := &broker{}
			b.on = func(s *scripted, p Publication) error {
				v := Verdict{Tag: p.Tag, Outcome: Confirmed}
				if strings.HasSuffix(string(p.Message.ID), "-2") {
					v.Returned, v.Reason = true, "312 NO_ROUTE"
				}
				s.say(v)
				return nil
			}
			r := newRig(t, b, Options{Returned: c.policy})
			r.append(3)
			r.until("all settled", func(q queue.Stats, p Stats) bool {
				return q.Ready+q.Leased == 0 && q.Delayed == c.delayed && q.Dead == c.dead && p.ReturnedTotal == 1
			})
			for m, err := range r.route.Dead() {
				if err != nil || m.Reason != "returned: 312 NO_ROUTE" {
					t.Errorf("dead letter %+v, %v", m, err)
				}
			}
		})
	}
}

// TestPublisher_Expired proves P10, also while the broker is away (B18).
func TestPublisher_Expired(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		opts              Options
		ingested, pubTime time.Time
		dead, sent        uint64
	}{
		"TTL":             {Options{TTL: time.Hour}, now.Add(-2 * time.Hour), now, 1, 0},
		"TTL of young":    {Options{TTL: time.Hour}, now, now.Add(-2 * time.Hour), 0, 1},
		"RetryTTL":        {Options{RetryTTL: time.Hour}, now, now.Add(-2 * time.Hour), 1, 0},
		"No pubTime":      {Options{RetryTTL: time.Hour}, now.Add(-2 * time.Hour), time.Time{}, 1, 0},
		"Dropped":         {Options{TTL: time.Hour, DropExpired: true}, now.Add(-2 * time.Hour), now, 0, 0},
		"None":            {Options{}, now.Add(-2000 * time.Hour), now.Add(-2000 * time.Hour), 0, 1},
		"Not yet expired": {Options{TTL: 3 * time.Hour, RetryTTL: 3 * time.Hour}, now.Add(-2 * time.Hour), now.Add(-2 * time.Hour), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := &broker{}
			if c.sent == 0 {
				b.dial = func(int) error { return errors.New("connection refused") }
			}
			r := newRig(t, b, c.opts)
			m := queue.Message{ID: queue.NewFileID().MessageID(1), Line: 1, Ingested: c.ingested, PubTime: c.pubTime}
			if err := r.route.Append([]queue.Message{m}); err != nil {
				t.Fatal(err)
			}
			r.until("settled", func(q queue.Stats, p Stats) bool {
				return q.Ready+q.Leased+q.Delayed == 0 && q.Dead == c.dead && p.ConfirmedTotal == c.sent && p.ExpiredTotal == 1-c.sent
			})
			for m, err := range r.route.Dead() {
				if err != nil || !strings.HasPrefix(m.Reason, "expired: ") {
					t.Errorf("dead letter %+v, %v", m, err)
				}
			}
		})
	}
}

// TestPublisher_Abort proves P6 for a hard stop: nobody waits for verdicts.
func TestPublisher_Abort(t *testing.T) {
	b := &broker{on: func(*scripted, Publication) error { return nil }}
	r := newRig(t, b, Options{Window: 4, StopTimeout: time.Hour})
	r.append(10)
	r.until("a full window", func(_ queue.Stats, p Stats) bool { return p.InFlight == 4 })
	r.p.Abort()
	r.p.Abort()
	r.halt()
	if q, err := r.route.Stats(); err != nil || q.Ready != 10 || q.Leased != 0 {
		t.Errorf("after the stop: %+v, %v", q, err)
	}
}

// TestPublisher_PanicIsDeadLetter: a message that makes our code panic is set
// aside, ends neither the process nor the others, and does not come again (B19).
func TestPublisher_PanicIsDeadLetter(t *testing.T) {
	b := &broker{}
	b.on = func(s *scripted, p Publication) error {
		if strings.HasSuffix(string(p.Message.ID), "-7") {
			panic("poison")
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	r := newRig(t, b, Options{Window: 16})
	ids := r.append(40)
	r.untilEmpty()
	for m, err := range r.route.Dead() {
		if err != nil || m.ID != ids[6] || m.Reason != "panic: poison" {
			t.Errorf("dead letter %+v, %v", m, err)
		}
	}
	if s := r.p.Stats(); s.ConfirmedTotal < 39 || s.InvalidTotal != 1 || s.SessionsTotal != 2 {
		t.Errorf("stats are %+v", s)
	}
}
