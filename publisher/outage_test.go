package publisher

import (
	"errors"
	"testing"

	"spoolfs/queue"
)

// TestPublisher_Outage: since when publishing fails, and of what, is known until the
// broker says something of a message; the time of verdicts is counted.
func TestPublisher_Outage(t *testing.T) {
	gate := make(chan struct{})
	b := &broker{dial: func(n int) error {
		select {
		case <-gate:
			return nil
		default:
			return &Fault{Cause: Unreachable, Err: errors.New("refused")}
		}
	}}
	r := newRig(t, b, Options{})
	if s := r.p.Stats(); !s.AwaySince.IsZero() || len(s.Failures) != 0 {
		t.Errorf("at first: %+v", s)
	}
	r.append(3)
	r.until("away", func(_ queue.Stats, s Stats) bool { return s.FailuresTotal >= 3 })
	s := r.p.Stats()
	if s.AwaySince.IsZero() || s.Failures[Failure{Retriable, Unreachable}] < 3 || s.ReconnectsTotal != 0 {
		t.Errorf("away: %+v", s)
	}
	close(gate)
	r.until("confirmed", func(_ queue.Stats, s Stats) bool { return s.ConfirmedTotal == 3 })
	s = r.p.Stats()
	if !s.AwaySince.IsZero() || s.ReconnectsTotal != 1 || s.ConfirmDuration.Count() != 3 {
		t.Errorf("back: %+v", s)
	}
}
