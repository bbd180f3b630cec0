package publisher

import "time"

// backoff draws the waits between attempts: full jitter, as a thousand nodes
// that lose the same broker must not come back at the same moment, not even
// for the first attempt.
type backoff struct {
	min, max time.Duration
	jitter   func(time.Duration) time.Duration
	failures int
}

// next returns the wait before the next attempt.
func (b *backoff) next() time.Duration {
	d := b.jitter(b.ceiling(b.failures))
	b.failures++
	return d
}

// ceiling is the longest wait after so many failures.
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
