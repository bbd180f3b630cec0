package publisher

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"sort"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"spoolfs/queue"
)

// TestBackoff_Spans: there is one attempt in each span, the first included, and
// no wait is longer than max.
func TestBackoff_Spans(t *testing.T) {
	for part := range 11 {
		b := backoff{min: 250 * time.Millisecond, max: 30 * time.Second, jitter: func(d time.Duration) time.Duration {
			return d * time.Duration(part) / 10
		}}
		var at, begin time.Duration
		for i := range 12 {
			wait := b.next()
			at += wait
			end := begin + b.ceiling(i)
			if slack := time.Microsecond; at < begin-slack || at > end+slack {
				t.Errorf("place %d, attempt %d is at %s, want it from %s to %s", part, i, at, begin, end)
			}
			if wait > b.max+time.Microsecond {
				t.Errorf("place %d: wait %d is %s", part, i, wait)
			}
			begin = end
		}
		b.reset()
		if got, want := b.next(), b.min*time.Duration(part)/10; got != want {
			t.Errorf("after a reset the wait is %s, want %s", got, want)
		}
	}
}

// herd is a broker that is away and comes back for many publishers.
type herd struct {
	back  time.Time
	mu    sync.Mutex
	dials []time.Time // that found it back
}

var errDone = errors.New("the broker is back")

func (h *herd) dial(context.Context) (Session, error) {
	now := time.Now()
	if now.Before(h.back) {
		return nil, errors.New("connection refused")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dials = append(h.dials, now)
	return nil, errDone
}

// run has one publisher dial until the broker is back.
func (h *herd) run(t *testing.T, random *rand.Rand) {
	p, err := New(Options{
		Route: new(queue.Route), Dial: h.dial, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Jitter: func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d) + 1)) },
	})
	if err != nil {
		t.Error(err)
		return
	}
	for {
		p.wait(t.Context(), errors.New("connection lost"))
		if err := p.runSession(t.Context()); errors.Is(err, errDone) {
			return
		}
	}
}

// TestBackoff_Herd proves P4 for 200 daemons (B14): they lose their broker at
// one moment, and when it is back for all of them at once their dials are spread
// over the window of 30 s. In no second there are more than twice as many as an
// even spread has; what chance adds to that in a single outage is told from what
// the backoff does by the mean of many.
func TestBackoff_Herd(t *testing.T) {
	const daemons, rounds = 200, 40
	window := 30 * time.Second
	limit := float64(2*daemons) / window.Seconds()
	mean := map[int]float64{} // dials by the second after the return
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			h := &herd{back: time.Now().Add(5*time.Minute + time.Duration(round)*7*time.Second/4)}
			var all sync.WaitGroup
			for i := range daemons {
				all.Go(func() { h.run(t, rand.New(rand.NewPCG(uint64(round), uint64(i)))) })
			}
			all.Wait()
			sort.Slice(h.dials, func(i, j int) bool { return h.dials[i].Before(h.dials[j]) })
			if last := h.dials[daemons-1].Sub(h.back); last > window {
				t.Errorf("round %d: the last dial is %s after the return", round, last)
			}
			worst := 0
			for i, at := range h.dials {
				mean[int(at.Sub(h.back)/time.Second)] += 1.0 / rounds
				n := sort.Search(daemons, func(j int) bool { return h.dials[j].Sub(at) >= time.Second }) - i
				worst = max(worst, n)
			}
			// A binomial of 200 with 1/30 is over 20 once in 100,000 times.
			if worst > 20 {
				t.Errorf("round %d: %d dials within a second", round, worst)
			}
		})
	}
	for second, n := range mean {
		if n > limit {
			t.Errorf("%.1f dials in second %d, want at most %.1f", n, second, limit)
		}
	}
	t.Logf("dials by second: %.3v", mean)
}
