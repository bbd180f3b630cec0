package publisher

import (
	"testing"
	"time"

	"spoolfs/queue"
)

// TestPublisher_UnconfirmedIsNotIdle: a session is kept while a verdict is
// missing, however long nothing else is to be sent; else a broker that takes its
// time would get the same message again and again, and nobody would know why.
func TestPublisher_UnconfirmedIsNotIdle(t *testing.T) {
	b := &broker{}
	b.on = func(s *scripted, p Publication) error {
		time.AfterFunc(300*time.Millisecond, func() { s.say(Verdict{Tag: p.Tag, Outcome: Confirmed}) })
		return nil
	}
	r := newRig(t, b, Options{IdleTimeout: 5 * time.Millisecond, StopTimeout: time.Millisecond})
	r.append(1)
	r.until("an idle publisher", func(q queue.Stats, p Stats) bool {
		return p.SessionsTotal > 1 || p.State == Idle && p.ConfirmedTotal == 1
	})
	if s := r.p.Stats(); s.SessionsTotal != 1 || s.RequeuedTotal != 0 {
		t.Errorf("stats are %+v", s)
	}
}
