package queue

import (
	"testing"
	"time"
)

// TestDurations: each is in the bucket of the first bound that it does not pass,
// and the buckets of a snapshot add up.
func TestDurations(t *testing.T) {
	var h Durations
	all := []time.Duration{0, 100 * time.Microsecond, 100*time.Microsecond + 1, time.Second, time.Minute}
	var sum time.Duration
	for _, d := range all {
		h.Observe(d)
		sum += d
	}
	s := h.Stats()
	if s.Count() != uint64(len(all)) || s.Sum != sum {
		t.Errorf("%d in %s, want %d in %s", s.Count(), s.Sum, len(all), sum)
	}
	for bound, want := range map[float64]uint64{0.0001: 2, 0.0003: 3, 0.3: 3, 1: 4, 30: 4} {
		if got := s.Buckets()[bound]; got != want {
			t.Errorf("%d within %g s, want %d", got, bound, want)
		}
	}
}
