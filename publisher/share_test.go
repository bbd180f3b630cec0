package publisher

import (
	"slices"
	"testing"
	"time"
)

// TestShare proves P15: what may be in flight doubles with each round trip while
// verdicts are prompt, halves once in the time of one when they are not, and begins low
// with each session.
func TestShare(t *testing.T) {
	s := newShare(1024, 30*time.Second)
	now := time.Now()
	// trip is a round trip in which all that may be in flight is answered.
	trip := func(took time.Duration) int {
		sent := slices.Repeat([]time.Time{now}, s.n)
		now = now.Add(took)
		s.answered(now, sent)
		return s.n
	}
	for i, step := range []struct {
		took time.Duration
		want int
	}{
		{time.Second, 32}, {time.Second, 64}, {5 * time.Second, 128}, {time.Second, 256}, {time.Second, 512},
		{time.Second, 1024}, {time.Second, 1024},
		{5*time.Second + 1, 512}, {time.Minute, 512}, // they were sent at the moment of the first
	} {
		if got := trip(step.took); got != step.want {
			t.Fatalf("step %d: %d may be in flight, want %d", i, got, step.want)
		}
	}
	for _, want := range []int{256, 128, 64, 32, 16, 8, 4, 2, 1, 1} {
		now = now.Add(time.Nanosecond)
		if got := trip(time.Minute); got != want {
			t.Fatalf("with verdicts that are late %d may be in flight, want %d", got, want)
		}
	}
	for range 10 {
		now = now.Add(time.Nanosecond)
		trip(time.Second)
	}
	s.restart(0)
	got := []int{s.n}
	for range 5 {
		s.restart(1)
		got = append(got, s.n)
	}
	if want := []int{16, 8, 4, 2, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("sessions that get no verdict begin with %d, want %d", got, want)
	}
}
