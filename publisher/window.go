package publisher

import (
	"context"
	"sync"
	"time"
)

// leaseBatch bounds what is leased in one read of the queue.
const leaseBatch = 256

// window is how many messages may be in flight, and the place where a broker
// that refuses messages is given time.
//
// Each nack halves the limit, so that what is in flight at the first one has
// brought it to 1 when it has all been refused; each confirm adds 1. A nack of
// what was published after the last pause begins the next one, which is twice as
// long; a confirm ends that growth. While the limit is low, messages are leased
// one at a time: then the queue hands out those that are due again before those
// that have never been refused, and a full queue at the broker delays no more
// than were in flight at once.
//
// What a broker that refuses nothing confirms in time is another limit: see share.
type window struct {
	most      int
	mostBytes int
	pauses    backoff

	// freed has something in it when acquire may look again.
	freed chan struct{}

	mu       sync.Mutex
	limit    int
	share    share
	taken    int
	bound    int // of what may be in flight besides; 0 is none
	bytes    int // of what is in flight
	suspects int // are to be sent one by one
	until    time.Time
	began    time.Time // of the last pause
	length   time.Duration
}

func newWindow(o *Options, pauses backoff) *window {
	return &window{
		most: o.Window, mostBytes: o.WindowBytes, limit: o.Window, share: newShare(o.Window, o.ConfirmTimeout),
		pauses: pauses, freed: make(chan struct{}, 1),
	}
}

// acquire waits for room and takes what there is, but not more than most. It
// returns 0 when ctx ends.
func (w *window) acquire(ctx context.Context, most int) int {
	for {
		n, wait := w.take(most)
		if n > 0 {
			return n
		}
		if !w.await(ctx, wait) {
			return 0
		}
	}
}

// await waits until there may be room, and returns false if ctx ends before.
func (w *window) await(ctx context.Context, pause time.Duration) bool {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-w.freed:
	case <-over:
	case <-ctx.Done():
		return false
	}
	return true
}

// take takes room, or says how long the pause is in which there is none.
func (w *window) take(most int) (int, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pause := time.Until(w.until); pause > 0 {
		return 0, pause
	}
	n := min(most, w.roomLocked()-w.taken)
	if n <= 0 || w.bytes >= w.mostBytes {
		return 0, 0
	}
	if w.limit < w.most {
		n = 1
	}
	w.taken += n
	return n, 0
}

// roomLocked is how many may be in flight at the moment.
func (w *window) roomLocked() int {
	if w.suspects > 0 {
		return 1
	}
	if w.bound > 0 {
		return min(w.limit, w.share.n, w.bound)
	}
	return min(w.limit, w.share.n)
}

// hold has no more than n messages in flight from now on, whatever the limit is; 0 ends
// that.
func (w *window) hold(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bound = n
}

// release gives room back.
func (w *window) release(n int) {
	w.mu.Lock()
	w.taken -= n
	w.mu.Unlock()
	w.wake()
}

// weigh takes note of bytes that are in flight from now on, or, if there are less
// than none, no more. release is to follow the latter.
func (w *window) weigh(bytes int) {
	w.mu.Lock()
	w.bytes += bytes
	w.mu.Unlock()
}

func (w *window) wake() {
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// confirmed lets the limit grow back, but not by what was published before the
// last pause.
func (w *window) confirmed(n int, oldest time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !oldest.After(w.began) {
		return
	}
	w.limit = min(w.most, w.limit+n)
	w.pauses.reset()
}

// answered takes note of the verdicts, whatever they are, of what was published at those
// times.
func (w *window) answered(now time.Time, published []time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.share.answered(now, published)
}

// rejected takes note of a nack of what was published at a time, and returns
// when to try it again.
func (w *window) rejected(at time.Time, attempts int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = max(1, w.limit/2)
	now := time.Now()
	if at.After(w.began) {
		ceiling := w.pauses.ceiling(w.pauses.failures)
		w.pauses.failures++
		w.began, w.length = now, min(w.pauses.max, ceiling+w.pauses.jitter(ceiling))
		w.until = now.Add(w.length)
	}
	// One that has been refused more often than the route has been paused in a
	// row has a problem of its own.
	if own := w.pauses.ceiling(attempts); own > w.length {
		return now.Add(own/2 + w.pauses.jitter(own/2))
	}
	return w.until
}

// paused says whether nothing is to be sent at the moment.
func (w *window) paused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.until)
}

// resume ends a pause.
func (w *window) resume() {
	w.mu.Lock()
	w.until = time.Time{}
	w.mu.Unlock()
	w.wake()
}

// suspect has the next n messages sent one by one.
func (w *window) suspect(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.suspects = n
}

// acquit takes note that n messages did not end the session, or are set aside.
func (w *window) acquit(n int) {
	w.mu.Lock()
	w.suspects = max(0, w.suspects-n)
	w.mu.Unlock()
	w.wake()
}

// clear forgets what was taken, since its session is gone, and begins another.
func (w *window) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.share.restart(w.taken)
	w.taken, w.bytes = 0, 0
}

// size is how many may be in flight at the moment, and the end of the pause.
func (w *window) size() (int, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roomLocked(), w.until
}

// isLow reports whether the limit is low since the broker has refused messages.
func (w *window) isLow() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit < w.most || w.suspects > 0
}
