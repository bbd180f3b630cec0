package publisher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"spoolfs/queue"
)

// Publisher empties one route.
type Publisher struct {
	opts    Options
	backoff backoff

	// healthy is set by a confirm and ends the growth of backoff.
	healthy atomic.Bool

	// suspects is how many messages are to be sent one by one, since one of
	// them made the broker end the session.
	suspects atomic.Int64

	// logged is the failure in the log, so that it is not there again at each
	// attempt. Only Run uses it.
	logged   string
	loggedAt time.Time

	mu      sync.Mutex // guards what follows
	stats   Stats
	session Session
}

// New makes a Publisher.
func New(opts Options) (*Publisher, error) {
	opts.ensureDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Publisher{
		opts:    opts,
		backoff: backoff{min: opts.RetryMin, max: opts.RetryMax, jitter: opts.Jitter},
		stats:   Stats{State: Idle},
	}, nil
}

// Run publishes until ctx ends, and returns nil then. An error is that the queue
// has closed.
func (p *Publisher) Run(ctx context.Context) error {
	for {
		p.setState(Idle)
		if err := p.awaitWork(ctx); err != nil {
			return unlessDone(ctx, err)
		}
		err := p.runSession(ctx)
		if ctx.Err() != nil || errors.Is(err, queue.ErrClosed) {
			return unlessDone(ctx, err)
		}
		if err != nil {
			p.wait(ctx, err)
		}
	}
}

func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Stats returns a snapshot.
func (p *Publisher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	if p.session != nil && p.session.Blocked() != "" {
		s.State = Blocked
	}
	return s
}

// awaitWork returns when there is something to send, so that a node without
// messages holds no connection. What it leases it puts back: while the broker
// is away messages are ready, not leased.
func (p *Publisher) awaitWork(ctx context.Context) error {
	leases, err := p.opts.Route.Lease(ctx, 1)
	if err != nil {
		return err
	}
	p.opts.Route.Requeue(leases...)
	return nil
}

// runSession opens a session and publishes on it until it ends. It returns nil
// if it ended for want of messages.
func (p *Publisher) runSession(ctx context.Context) error {
	p.setState(Connecting)
	session, err := p.opts.Dial(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	p.update(func(s *Stats) {
		s.State = Connected
		s.SessionsTotal++
	})
	p.setSession(session)
	defer p.setSession(nil)
	return newRun(p, session).publish(ctx)
}

// logEvery is how often a failure that goes on is logged.
const logEvery = 5 * time.Minute

// wait records a failure and waits before the next attempt.
func (p *Publisher) wait(ctx context.Context, err error) {
	if p.healthy.Swap(false) {
		p.backoff.reset()
	}
	d := p.backoff.next()
	p.fail(err)
	p.update(func(s *Stats) {
		s.State = Waiting
		s.NextAttempt = time.Now().Add(d)
	})
	if text := err.Error(); text != p.logged || time.Since(p.loggedAt) > logEvery {
		p.logged, p.loggedAt = text, time.Now()
		p.opts.Logger.Warn("cannot publish", "error", err, "retry_in", d.Round(time.Millisecond))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (p *Publisher) fail(err error) {
	p.update(func(s *Stats) {
		s.LastError, s.LastErrorTime = capped(err.Error()), time.Now()
	})
}

// capped cuts a text that everybody may read and that may quote what a user
// wrote.
func capped(text string) string {
	const most = 512
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func (p *Publisher) setState(state State) {
	p.update(func(s *Stats) { s.State = state })
}

func (p *Publisher) update(f func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.stats)
}

func (p *Publisher) setSession(s Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = s
}
