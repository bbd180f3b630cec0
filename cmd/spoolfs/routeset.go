package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"spoolfs/fs"
	"spoolfs/publisher"
	"spoolfs/queue"
)

// routeSet are the routes of a daemon.
type routeSet struct {
	mu      sync.Mutex      // guards what follows
	all     []*routeParts   // that of the root first, the others by name
	working context.Context // of run; nil while it does not run
	failed  chan error      // the first error of a publisher
	running sync.WaitGroup
}

// list returns the routes, that of the root first.
func (s *routeSet) list() []*routeParts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// named returns the route of a name, or nil.
func (s *routeSet) named(name string) *routeParts {
	for _, p := range s.list() {
		if p.name() == name {
			return p
		}
	}
	return nil
}

// of returns the parts of a route of the queue, or nil.
func (s *routeSet) of(q *queue.Route) *routeParts {
	for _, p := range s.list() {
		if p.queue == q {
			return p
		}
	}
	return nil
}

// replace makes these the routes. The publishers of others end, those of new ones
// begin.
func (s *routeSet) replace(all []*routeParts) {
	s.mu.Lock()
	was := s.all
	s.all = all
	for _, p := range all {
		s.startLocked(p)
	}
	s.mu.Unlock()
	for _, p := range was {
		if !slices.Contains(all, p) {
			s.end(p)
		}
	}
}

// end ends the publisher of a route, and waits for what it has on its way.
func (s *routeSet) end(p *routeParts) {
	s.mu.Lock()
	stop, ended := p.stop, p.ended
	s.mu.Unlock()
	if stop != nil {
		stop()
		<-ended
	}
}

// startLocked has a route published, if the others are.
func (s *routeSet) startLocked(p *routeParts) {
	if s.working == nil || p.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.working)
	p.stop, p.ended = cancel, make(chan struct{})
	failed := s.failed
	s.running.Go(func() {
		defer close(p.ended)
		if err := p.publisher.Run(ctx); err != nil {
			select {
			case failed <- err:
			default: // one is enough
			}
		}
	})
}

// run publishes what is in the routes until ctx ends, and returns nil then. An
// error is that of one of the publishers.
func (s *routeSet) run(ctx context.Context) error {
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	s.mu.Lock()
	s.working, s.failed = working, failed
	for _, p := range s.all {
		s.startLocked(p)
	}
	s.mu.Unlock()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	cancel()
	s.mu.Lock()
	s.working = nil
	s.mu.Unlock()
	s.running.Wait()
	select {
	case e := <-failed:
		err = errors.Join(err, e)
	default:
	}
	return err
}

// abort has run wait for no verdict any more.
func (s *routeSet) abort() {
	for _, p := range s.list() {
		p.publisher.Abort()
	}
}

// stats is the sum of what is in the routes.
func (s *routeSet) stats() (sum queue.Stats, err error) {
	for _, p := range s.list() {
		one, err := p.queue.Stats()
		if err != nil {
			return sum, err
		}
		sum.Ready, sum.Leased, sum.Delayed = sum.Ready+one.Ready, sum.Leased+one.Leased, sum.Delayed+one.Delayed
		sum.Dead, sum.Partial, sum.Staged = sum.Dead+one.Dead, sum.Partial+one.Partial, sum.Staged+one.Staged
	}
	return sum, nil
}

// areDone reports whether no route has anything left that can be sent.
func (s *routeSet) areDone(empty bool) bool {
	return !slices.ContainsFunc(s.list(), func(p *routeParts) bool { return !p.isDone(empty) })
}

// routesOf are the routes of a configuration, that of the root first. Those that are
// new are made in the store, and one that has another name now is given that.
func (d *daemon) routesOf(c *mountCommand) ([]*liveRoute, error) {
	for _, r := range c.routes {
		if r.Was == "" {
			continue
		}
		switch err := d.queue.RenameRoute(r.Was, r.name); {
		case err == nil:
			d.log.Info("a route has another name", "route", r.name, "was", r.Was)
		case errors.Is(err, queue.ErrExists):
			d.log.Warn("a route cannot take over what is in another, as it was there before: both keep what they have", "route", r.name, "was", r.Was)
		case !errors.Is(err, queue.ErrNotFound): // which it is from the second start on
			return nil, err
		}
	}
	all := []*liveRoute{newLiveRoute(d.route, "", &c.routeFlags)}
	for _, r := range c.routes {
		q, err := d.queue.Route(r.name)
		if err != nil {
			return nil, err
		}
		all = append(all, newLiveRoute(q, r.Directory, &r.routeFlags))
	}
	return all, nil
}

// setRoutes puts the routes of a configuration in force.
func (d *daemon) setRoutes(c *mountCommand) error {
	lives, err := d.routesOf(c)
	if err != nil {
		return err
	}
	byName := map[string]*liveRoute{}
	for _, l := range lives {
		byName[l.name] = l
	}
	var all []*routeParts
	for _, l := range lives {
		l.subjects = l.coalesces(byName)
		opts := d.publisherOptions(l, byName)
		p := d.routes.of(l.queue)
		if p == nil {
			if p, err = newRouteParts(l, opts); err != nil {
				return fmt.Errorf("route %s: %w", l.name, err)
			}
		} else if err := errors.Join(p.format.set(l), p.publisher.Reconfigure(opts)); err != nil {
			return fmt.Errorf("route %s: %w", l.name, err)
		}
		p.live.Store(l)
		if err := p.queue.SetOptions(l.flags.queueOptions()); err != nil {
			return err
		}
		all = append(all, p)
	}
	d.routes.replace(all)
	return nil
}

// newRouteParts makes the parts of a route.
func newRouteParts(l *liveRoute, opts publisher.Options) (*routeParts, error) {
	p := &routeParts{queue: opts.Route, format: &liveFormat{}}
	if err := p.format.set(l); err != nil {
		return nil, err
	}
	var err error
	p.publisher, err = publisher.New(opts)
	return p, err
}

// fsRoutes are the routes of the mount besides that of the root: those of the
// configuration, and those that only the store knows.
func (d *daemon) fsRoutes() []fs.RouteOptions {
	var all []fs.RouteOptions
	for _, q := range d.queue.Routes() {
		opts := fs.RouteOptions{Queue: q}
		if p := d.routes.of(q); p != nil {
			l := p.live.Load()
			opts.Dir, opts.Format, opts.UserName, opts.Provenance = l.dir, p.format, p.format.userName, l.flags.Provenance
			opts.FileLimit, opts.MessageLimit = int64(l.flags.FileLimit), int64(l.flags.MessageLimit)
			opts.Linger, opts.HeldFor = l.flags.Linger, l.flags.HeldFor
		}
		if q != d.route {
			all = append(all, opts)
		}
	}
	return all
}

// removed are the routes that only the store knows, and that hold something.
func (d *daemon) removed() []*queue.Route {
	var left []*queue.Route
	for _, q := range d.queue.Routes() {
		if d.routes.of(q) != nil {
			continue
		}
		if s, err := q.Stats(); err != nil || s.Ready+s.Leased+s.Delayed+s.Dead+s.Partial+s.Staged > 0 {
			left = append(left, q)
		}
	}
	return left
}

// warnOfRemoved says which routes the configuration has lost.
func (d *daemon) warnOfRemoved() {
	var names []string
	for _, q := range d.removed() {
		names = append(names, q.Name())
	}
	if len(names) > 0 {
		d.log.Warn("routes that are not in the configuration any more hold messages, which stay: put the routes back, name them in \"was\" of another one, or drain or purge them",
			"routes", strings.Join(names, " "))
	}
}
