package publisher

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// pace bounds the messages a second. After an outage it begins with a tenth of
// that and grows to all of it, as a broker that has just come back meets
// everything that has piled up on all nodes.
type pace struct {
	full rate.Limit // 0 is none
	ramp time.Duration

	mu      sync.Mutex
	limiter *rate.Limiter
	since   time.Time // of the end of the outage; zero when all is normal
}

func newPace(perSecond float64, ramp time.Duration) *pace {
	p := &pace{full: rate.Limit(perSecond), ramp: ramp}
	if perSecond > 0 {
		p.limiter = rate.NewLimiter(p.full, p.burst())
	}
	return p
}

// burst is what may go at once, and what it is of use to lease.
func (p *pace) burst() int {
	if p.full <= 0 {
		return leaseBatch
	}
	return min(leaseBatch, max(1, int(p.full/10)))
}

// restart begins the ramp.
func (p *pace) restart() {
	if p.limiter == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
	p.limiter.SetLimit(p.full / 10)
}

// wait waits until the next message may be sent.
func (p *pace) wait(ctx context.Context) error {
	if p.limiter == nil {
		return nil
	}
	p.climb()
	return p.limiter.Wait(ctx)
}

// climb sets the limit of this moment of the ramp.
func (p *pace) climb() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return
	}
	part := float64(time.Since(p.since)) / float64(p.ramp)
	if part >= 1 {
		part, p.since = 1, time.Time{}
	}
	p.limiter.SetLimit(p.full * rate.Limit(max(0.1, part)))
}
