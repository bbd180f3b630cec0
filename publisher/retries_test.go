package publisher

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"spoolfs/queue"
)

// TestPublisher_GivesUp: a message that the broker refuses again and again is a dead
// letter after MaxAttempts (P12), one whose session is lost is not, and the others are
// published.
func TestPublisher_GivesUp(t *testing.T) {
	for _, most := range []int{1, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			b := &broker{}
			lost := 0
			b.on = func(s *scripted, p Publication) error {
				switch p.Message.Line {
				case 2:
					s.say(Verdict{Tag: p.Tag, Outcome: Rejected})
				case 3:
					if lost++; lost <= 5 {
						s.end(fmt.Errorf("connection reset"))
						return nil
					}
					fallthrough
				default:
					s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
				}
				return nil
			}
			r := newRig(t, b, Options{Window: 1, MaxAttempts: most, RetryMax: 2 * time.Millisecond})
			ids := r.append(4)
			r.untilEmpty()
			r.halt()
			if n := strings.Count(b.ids(), string(ids[1])); n != most {
				t.Errorf("it was published %d times, want %d", n, most)
			}
			dead := 0
			for m, err := range r.route.Dead() {
				want := fmt.Sprintf("given-up: attempt %d of %d: the broker rejected it", most, most)
				if err != nil || m.ID != ids[1] || m.Reason != want {
					t.Errorf("dead letter %+v, %v, want %s because of %q", m, err, ids[1], want)
				}
				dead++
			}
			s := r.p.Stats()
			if dead != 1 || s.GivenUpTotal != 1 || s.ConfirmedTotal != 3 || s.RejectedTotal != uint64(most) {
				t.Errorf("%d dead letters, stats are %+v", dead, s)
			}
		})
	}
}

// TestPublisher_GivesUpNamed: so is one whose exchange nobody allows.
func TestPublisher_GivesUpNamed(t *testing.T) {
	r := newRig(t, &broker{}, Options{MaxAttempts: 2, LazyWait: time.Millisecond, LazyMax: time.Millisecond})
	m := queue.Message{ID: "named", Exchange: "xs_other", Ingested: time.Now()}
	if err := r.route.Append([]queue.Message{m}); err != nil {
		t.Fatal(err)
	}
	r.until("a dead letter", func(q queue.Stats, p Stats) bool { return q.Dead == 1 && p.GivenUpTotal == 1 })
	for m, err := range r.route.Dead() {
		if err != nil || !strings.HasPrefix(m.Reason, "given-up: attempt 2 of 2: the exchange") {
			t.Errorf("dead letter %+v, %v", m, err)
		}
	}
}

// TestPublisher_GivingUpSlows: a broker whose queue is full is spared though no message
// is tried again.
func TestPublisher_GivingUpSlows(t *testing.T) {
	b := &broker{on: func(s *scripted, p Publication) error {
		s.say(Verdict{Tag: p.Tag, Outcome: Rejected})
		return nil
	}}
	r := newRig(t, b, Options{Window: 8, MaxAttempts: 1, RetryMin: time.Hour, RetryMax: time.Hour})
	r.append(100)
	r.until("a pause", func(q queue.Stats, p Stats) bool { return q.Dead > 0 && p.InFlight == 0 && !p.PausedUntil.IsZero() })
	if s, err := r.route.Stats(); err != nil || s.Dead > 8 {
		t.Errorf("%+v, %v: want no more dead letters than the window", s, err)
	}
}
