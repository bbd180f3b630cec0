package publisher

import "time"

// backoff draws the waits between attempts: full jitter, as a thousand nodes
// that lose the same broker must not come back at the same moment, not even
// for the first attempt.
//
// Time since the loss is divided into spans that double from min to max, with
// one attempt in each, at a place that is drawn once for an outage: the first
// wait is anything from 0 to min, and no wait is longer than max. With a place
// drawn anew for each wait N nodes would make 2N attempts in a span; so they
// make N, evenly spread.
type backoff struct {
	min, max time.Duration
	jitter   func(time.Duration) time.Duration
	failures int
	place    time.Duration // between 0 and min
}

// next returns the wait before the next attempt.
func (b *backoff) next() time.Duration {
	if b.failures == 0 {
		b.failures = 1
		b.place = b.jitter(b.min)
		return b.place
	}
	last, span := b.ceiling(b.failures-1), b.ceiling(b.failures)
	b.failures++
	return last - b.within(last) + b.within(span)
}

// within is the place of the attempt in a span.
func (b *backoff) within(span time.Duration) time.Duration {
	return time.Duration(float64(span) * float64(b.place) / float64(b.min))
}

// ceiling is the span after so many failures.
func (b *backoff) ceiling(failures int) time.Duration {
	ceiling := b.min
	for range failures {
		if ceiling >= b.max/2 {
			return b.max
		}
		ceiling *= 2
	}
	return min(ceiling, b.max)
}

func (b *backoff) reset() { b.failures = 0 }
