package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"spoolfs/queue"
)

// drainCommand are the flags of "spoolfs drain".
type drainCommand struct {
	storeFlags `embed:""`

	To string `config:"-" env:"-" placeholder:"MOUNTPOINT" help:"Move the messages, dead letters and partial files to the spool that is mounted there, instead of sending them."`

	Route string `config:"-" env:"-" placeholder:"NAME" help:"Send only what is in this route of the store: with its settings in the configuration, or, if it is not there, with those of the default route."`

	Limit time.Duration `config:"-" help:"End after this time in any case, with exit code 75 (no limit)."`
}

// Run is called by kong.
func (c *drainCommand) Run(env *environment) error {
	if err := c.mustExist(); err != nil {
		return err
	}
	if c.To != "" {
		s, err := openOffline(env, c.Store, false)
		if err != nil {
			return err
		}
		return errors.Join(c.handOver(env, s), s.close())
	}
	if err := c.addRoute(); err != nil {
		return err
	}
	d, err := c.open(env)
	if err != nil {
		return err
	}
	return errors.Join(c.drain(env, d), d.close())
}

// addRoute makes a route of the one that is named, if the configuration has none.
func (c *drainCommand) addRoute() error {
	if c.Route == "" || c.Route == defaultRoute || c.route(c.Route) != nil {
		return nil
	}
	r, err := c.inherit(c.Route, nil)
	if err == nil {
		c.routes = append(c.routes, r)
	}
	return err
}

// choose leaves only the route that is named.
func (c *drainCommand) choose(d *daemon) error {
	if c.Route == "" {
		return nil
	}
	p := d.routes.named(c.Route)
	if s, err := p.queue.Stats(); err != nil {
		return withCode(exitIO, err)
	} else if unsent(s) == 0 {
		return withCode(exitUsage, fmt.Errorf("route %q: nothing is in it that could be sent; in %s are: %s", c.Route, c.Store, storedRoutes(d.queue)))
	}
	d.routes.replace([]*routeParts{p})
	return nil
}

// storedRoutes says which routes of a store hold something to be sent.
func storedRoutes(q *queue.Queue) string {
	var all []string
	for _, r := range q.Routes() {
		if s, err := r.Stats(); err == nil && unsent(s) > 0 {
			all = append(all, fmt.Sprintf("%s (%d)", r.Name(), unsent(s)))
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, " ")
}

func (c *drainCommand) drain(env *environment, d *daemon) error {
	if err := c.choose(d); err != nil {
		return err
	}
	stats, err := d.routes.stats()
	if err != nil {
		return withCode(exitIO, err)
	}
	ctx, cancel := c.limited(env.ctx)
	defer cancel()
	bar := newProgress(env.stderr, "draining", unsent(stats))
	p := d.startPublishing()
	empty, err := p.until(ctx, func() bool {
		if stats, err = d.routes.stats(); err != nil {
			return false
		}
		bar.left(unsent(stats), string(d.routes.list()[0].publisher.Stats().State))
		return unsent(stats) == 0
	})
	err = errors.Join(err, p.stop())
	if now, e := d.routes.stats(); e == nil {
		stats = now
	}
	bar.end(unsent(stats))
	c.report(env, d, stats)
	if err == nil && !empty && unsent(stats) > 0 {
		cause := "interrupted"
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cause = fmt.Sprintf("not done within %s", c.Limit)
		}
		for _, p := range d.routes.list() {
			if last := p.publisher.Stats(); last.LastError != "" {
				cause += fmt.Sprintf("; last error of route %s: %s: %s", p.name(), last.LastError, last.LastAdvice)
			}
		}
		err = withCode(exitTemporary, fmt.Errorf("%s: %d messages are still in %s, safe; run it again", cause, unsent(stats), c.Store))
	}
	return err
}

// limited is a context that ends at the limit, if there is one.
func (c *drainCommand) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Limit > 0 {
		return context.WithTimeout(ctx, c.Limit)
	}
	return context.WithCancel(ctx)
}

// report says what was done and what a drain does not send.
func (c *drainCommand) report(env *environment, d *daemon, left queue.Stats) {
	var sent uint64
	for _, p := range d.routes.list() {
		sent += p.publisher.Stats().ConfirmedTotal
	}
	fmt.Fprintf(env.stderr, "%d messages sent, %d left\n", sent, unsent(left))
	if c.Route == "" && len(d.removed()) > 0 {
		fmt.Fprintf(env.stderr, "not sent, as the configuration has no such routes: see %s; drain them with --route=NAME\n", storedRoutes(d.queue))
	}
	if left.Dead+left.Partial+left.Staged > 0 {
		fmt.Fprintf(env.stderr, "not sent, and still in %s: %d dead letters, %d partial files, %d pieces of files with temporary names\n",
			c.Store, left.Dead, left.Partial, left.Staged)
	}
}
