package publisher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"spoolfs/queue"
)

// Publisher empties one route.
type Publisher struct {
	team team // the other workers; none of theirs has any

	opts      Options
	backoff   backoff
	window    *window
	pace      *pace
	exchanges exchanges
	control   control

	// healthy is set by a confirm and ends the growth of backoff.
	healthy atomic.Bool

	// forgive has exchanges tried again that are avoided: see Retry.
	forgive atomic.Bool

	// kick ends a wait: see Retry.
	kick chan struct{}

	// hard is closed by Abort.
	hard     chan struct{}
	hardOnce sync.Once

	// logged is when each cause was logged last, so that it is not there again at
	// each attempt. Only Run uses it.
	logged map[Cause]time.Time

	// slowed says that the log has that the broker refuses messages.
	slowed atomic.Bool

	// verdicts is how long they took.
	verdicts queue.Durations

	mu       sync.Mutex // guards what follows
	stats    Stats
	failures map[Failure]uint64
	session  Session
}

// New makes a Publisher.
func New(opts Options) (*Publisher, error) {
	opts.ensureDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	p, err := newWorker(opts.share(1))
	if err == nil {
		err = p.team.resize(&opts)
	}
	return p, err
}

// newWorker makes a Publisher with one session.
func newWorker(opts Options) (*Publisher, error) {
	opts.ensureDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	waits := backoff{min: opts.RetryMin, max: opts.RetryMax, jitter: opts.Jitter}
	return &Publisher{
		opts:      opts,
		backoff:   waits,
		window:    newWindow(&opts, waits),
		pace:      newPace(opts.Rate, opts.RateRamp),
		exchanges: exchanges{own: OwnExchanges(opts.Exchange, opts.Split), code: opts.SplitCode, allowed: opts.Allowed},
		kick:      make(chan struct{}, 1),
		hard:      make(chan struct{}),
		logged:    map[Cause]time.Time{},
		failures:  map[Failure]uint64{},
		stats:     Stats{State: Idle, RateLimited: opts.Rate > 0},
	}, nil
}

// work publishes until ctx ends, as Run does, without pauses.
func (p *Publisher) work(ctx context.Context) error {
	for {
		p.setState(Idle)
		err := p.awaitWork(ctx)
		if err == nil {
			err = p.runSession(ctx)
		}
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

// Retry ends a wait for the next attempt and a pause, if there is one, and has
// exchanges tried that were missing: the configuration, or what the broker
// complained of, has changed.
func (p *Publisher) Retry() {
	p.retry()
	p.team.each((*Publisher).retry)
}

func (p *Publisher) retry() {
	p.forgive.Store(true)
	p.window.resume()
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Abort has Run, whose context must have ended or end soon, wait for no verdict
// any more: what is in flight is sent again after the next start. It may be
// called at any time, and more than once.
func (p *Publisher) Abort() {
	p.abort()
	p.team.each((*Publisher).abort)
}

func (p *Publisher) abort() { p.hardOnce.Do(func() { close(p.hard) }) }

// Stats returns a snapshot, the sum over all workers.
func (p *Publisher) Stats() Stats {
	s := p.own()
	p.team.addTo(&s)
	return s
}

// own are the numbers of one worker.
func (p *Publisher) own() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Failures = maps.Clone(p.failures)
	s.ConfirmDuration = p.verdicts.Stats()
	s.Window, s.PausedUntil = p.window.size()
	if s.State == Connected && p.window.isLow() {
		s.State = Slowed
	}
	if p.session != nil && p.session.Blocked() != "" {
		s.State = Blocked
	}
	if p.control.isPaused() {
		s.State = Paused
	}
	return s
}

// awaitWork returns when there is something to send, so that a node without
// messages holds no connection. What it leases it puts back: while the broker
// is away messages are ready, not leased. What has expired goes all the same.
func (p *Publisher) awaitWork(ctx context.Context) error {
	most := 1
	if p.opts.TTL > 0 || p.opts.RetryTTL > 0 {
		most = leaseBatch
	}
	for {
		leases, err := p.opts.Route.Lease(ctx, most)
		if err != nil {
			return err
		}
		leases, err = p.expire(leases)
		p.opts.Route.Requeue(leases...)
		if err != nil || len(leases) > 0 {
			return err
		}
	}
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
		if !s.AwaySince.IsZero() {
			s.ReconnectsTotal++
		}
	})
	select {
	case <-p.kick: // it was for this
	default:
	}
	p.setSession(session)
	defer p.setSession(nil)
	return newRun(p, session).publish(ctx)
}

// logEvery is how often a failure that goes on is logged.
const logEvery = 5 * time.Minute

// wait records a failure and waits before the next attempt.
func (p *Publisher) wait(ctx context.Context, err error) {
	f := faultOf(err)
	d := p.waitFor(f)
	p.pace.restart()
	p.fail(err)
	p.update(func(s *Stats) {
		s.State = Waiting
		s.FailuresTotal++
		s.NextAttempt = time.Now().Add(d)
		if s.AwaySince.IsZero() {
			s.AwaySince = time.Now()
			clear(p.logged)
		}
	})
	p.logFailure(f, err, d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.kick:
	case <-ctx.Done():
	}
}

// logFailure logs a failure, each cause once in an outage and again when it goes
// on: the text of the same failure differs from one attempt to the next.
func (p *Publisher) logFailure(f *Fault, err error, wait time.Duration) {
	if at, ok := p.logged[f.Cause]; ok && time.Since(at) < logEvery {
		return
	}
	p.logged[f.Cause] = time.Now()
	p.opts.Logger.Warn("cannot publish", "route", p.opts.Route.Name(), "error", capped(err.Error()),
		"cause", f.Cause, "advice", f.Cause.Advice(), "retry_in", wait.Round(time.Millisecond))
}

// waitFor is the wait that the policy of a failure asks for.
func (p *Publisher) waitFor(f *Fault) time.Duration {
	if p.healthy.Swap(false) {
		p.backoff.reset()
	}
	if p.opts.policyOf(f.Class).route == waits {
		// The next attempt is to cost no more than one message.
		p.window.suspect(1)
		return p.opts.LazyWait/2 + p.opts.Jitter(p.opts.LazyWait/2)
	}
	return p.backoff.next()
}

// fail shows a failure in the status.
func (p *Publisher) fail(err error) {
	f := faultOf(err)
	p.note(f)
	p.update(func(s *Stats) {
		s.LastError, s.LastErrorTime = capped(err.Error()), time.Now()
		s.LastCause, s.LastAdvice = f.Cause, f.Cause.Advice()
	})
}

// note counts a failure by its kind.
func (p *Publisher) note(f *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures[Failure{f.Class, f.Cause}]++
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
