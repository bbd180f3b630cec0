package publisher

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// A publisher with Options.Workers is a team: each worker has a session of its own and
// takes from the route what the others have not, so that one whose broker does not
// answer holds up no more than what it has in flight. Window, WindowBytes and Rate are
// those of the team, in equal parts. The order of the route holds within each worker
// alone (G6 is given up).

// MaxWorkers bounds the sessions of a route.
const MaxWorkers = 64

// team is the workers of a publisher beside itself.
type team struct {
	mu      sync.Mutex // guards what follows
	mates   []*mate
	paused  bool
	ctx     context.Context // of Run; nil while it does not run
	running sync.WaitGroup
	err     error // the first of the mates
}

// mate is a worker beside the first. One that is not needed any more pauses, as its
// numbers go on to count.
type mate struct {
	*Publisher
	started, surplus bool
}

// share is what one of the workers has of the options of a team.
func (o *Options) share(number int) Options {
	part := *o
	part.Workers = 1
	if o.Workers > 1 {
		part.Window = max(1, o.Window/o.Workers)
		part.WindowBytes = max(1, o.WindowBytes/o.Workers)
		part.Rate = o.Rate / float64(o.Workers)
		part.Logger = o.Logger.With(slog.Int("worker", number))
	}
	return part
}

// resize makes the team as large as the options say, and gives each its share.
func (t *team) resize(opts *Options) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.mates) < opts.Workers-1 {
		p, err := newWorker(opts.share(len(t.mates) + 2))
		if err != nil {
			return err
		}
		t.mates = append(t.mates, &mate{Publisher: p})
	}
	for i, m := range t.mates {
		if err := m.reconfigure(opts.share(i + 2)); err != nil {
			return err
		}
		if m.surplus = i >= opts.Workers-1; m.surplus || t.paused {
			m.pause()
		} else {
			m.resume()
		}
	}
	t.startLocked()
	return nil
}

// startLocked starts those that do not run, if the team does.
func (t *team) startLocked() {
	if t.ctx == nil {
		return
	}
	for _, m := range t.mates {
		if m.started {
			continue
		}
		m.started = true
		ctx := t.ctx
		t.running.Go(func() {
			err := m.run(ctx)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.err = cmp.Or(t.err, err)
		})
	}
}

// run has the mates work while the first worker does.
func (t *team) run(ctx context.Context, first func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	t.mu.Lock()
	t.ctx, t.err = ctx, nil
	t.startLocked()
	t.mu.Unlock()
	err := first(ctx)
	stop()
	t.mu.Lock()
	t.ctx = nil // nobody is started from now on
	t.mu.Unlock()
	t.running.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.mates {
		m.started = false
	}
	return cmp.Or(err, t.err)
}

// each calls f for each mate.
func (t *team) each(f func(*Publisher)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.mates {
		f(m.Publisher)
	}
}

// hold pauses all mates, or resumes those that are needed.
func (t *team) hold(paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = paused
	for _, m := range t.mates {
		if paused || m.surplus {
			m.pause()
		} else {
			m.resume()
		}
	}
}

// addTo adds the numbers of the mates.
func (t *team) addTo(s *Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.mates {
		own := m.own()
		if m.surplus {
			own.Window = 0
		}
		s.add(own)
	}
}

// states are those of a worker, the one that speaks for a team first: what one of them
// can do, the route can.
var states = []State{Connected, Slowed, Blocked, Waiting, Connecting, Paused, Idle}

// add makes the numbers of two workers one.
func (s *Stats) add(o Stats) {
	if s.works() || o.works() {
		s.AwaySince = time.Time{}
	} else {
		s.AwaySince = earlier(s.AwaySince, o.AwaySince)
	}
	if slices.Index(states, o.State) < slices.Index(states, s.State) {
		s.State = o.State
	}
	s.InFlight += o.InFlight
	s.Window += o.Window
	if o.PausedUntil.After(s.PausedUntil) {
		s.PausedUntil = o.PausedUntil
	}
	s.ConfirmedTotal += o.ConfirmedTotal
	s.ReturnedTotal += o.ReturnedTotal
	s.RejectedTotal += o.RejectedTotal
	s.InvalidTotal += o.InvalidTotal
	s.RefusedTotal += o.RefusedTotal
	s.GivenUpTotal += o.GivenUpTotal
	s.ExpiredTotal += o.ExpiredTotal
	s.FollowedTotal += o.FollowedTotal
	s.RequeuedTotal += o.RequeuedTotal
	s.SessionsTotal += o.SessionsTotal
	s.ReconnectsTotal += o.ReconnectsTotal
	s.FailuresTotal += o.FailuresTotal
	for f, n := range o.Failures {
		s.Failures[f] += n
	}
	s.ConfirmDuration.Add(o.ConfirmDuration)
	if o.LastErrorTime.After(s.LastErrorTime) {
		s.LastError, s.LastErrorTime = o.LastError, o.LastErrorTime
		s.LastCause, s.LastAdvice = o.LastCause, o.LastAdvice
	}
	s.NextAttempt = earlier(s.NextAttempt, o.NextAttempt)
}

// works reports whether a worker publishes.
func (s *Stats) works() bool {
	return s.AwaySince.IsZero() && (s.State == Connected || s.State == Slowed)
}

// earlier is the earlier of two times; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (o *Options) validateWorkers() error {
	if o.Workers < 0 || o.Workers > MaxWorkers {
		return fmt.Errorf("%d workers: at most %d", o.Workers, MaxWorkers)
	}
	return nil
}
