package queue

import (
	"sync/atomic"
	"time"
)

// durationBounds are the upper bounds of the buckets of Durations: from what a
// disk that is no disk takes, to what makes a person call somebody.
var durationBounds = [...]time.Duration{
	100 * time.Microsecond, 300 * time.Microsecond,
	time.Millisecond, 3 * time.Millisecond,
	10 * time.Millisecond, 30 * time.Millisecond,
	100 * time.Millisecond, 300 * time.Millisecond,
	time.Second, 3 * time.Second,
	10 * time.Second, 30 * time.Second,
}

// Durations counts how long something took, in buckets. Its methods may be
// called from any goroutine and never wait; the zero value is empty.
type Durations struct {
	buckets [len(durationBounds) + 1]atomic.Uint64 // the last is what is longer
	sum     atomic.Int64                           // nanoseconds
}

// Observe counts one that took d.
func (h *Durations) Observe(d time.Duration) {
	i := 0
	for i < len(durationBounds) && d > durationBounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// Stats returns a snapshot.
func (h *Durations) Stats() DurationStats {
	s := DurationStats{Sum: time.Duration(h.sum.Load())}
	for i := range h.buckets {
		s.buckets[i] = h.buckets[i].Load()
	}
	return s
}

// DurationStats is a snapshot of Durations.
type DurationStats struct {
	Sum     time.Duration // of all
	buckets [len(durationBounds) + 1]uint64
}

// Add counts what o has, too.
func (s *DurationStats) Add(o DurationStats) {
	s.Sum += o.Sum
	for i, n := range o.buckets {
		s.buckets[i] += n
	}
}

// Count is how many there were.
func (s DurationStats) Count() uint64 {
	var n uint64
	for _, count := range s.buckets {
		n += count
	}
	return n
}

// Buckets returns how many took no longer than each of some bounds, in seconds.
func (s DurationStats) Buckets() map[float64]uint64 {
	upTo := make(map[float64]uint64, len(durationBounds))
	var n uint64
	for i, bound := range durationBounds {
		n += s.buckets[i]
		upTo[bound.Seconds()] = n
	}
	return upTo
}
