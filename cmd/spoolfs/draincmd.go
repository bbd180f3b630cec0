package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"spoolfs/queue"
)

// drainCommand are the flags of "spoolfs drain".
type drainCommand struct {
	storeFlags `embed:""`

	To string `config:"-" env:"-" placeholder:"MOUNTPOINT" help:"Move the messages, dead letters and partial files to the spool that is mounted there, instead of sending them."`

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
	d, err := c.open(env)
	if err != nil {
		return err
	}
	return errors.Join(c.drain(env, d), d.close())
}

func (c *drainCommand) drain(env *environment, d *daemon) error {
	stats, err := d.queue.Stats()
	if err != nil {
		return withCode(exitIO, err)
	}
	ctx, cancel := c.limited(env.ctx)
	defer cancel()
	bar := newProgress(env.stderr, "draining", unsent(stats))
	p := d.startPublishing()
	empty, err := p.until(ctx, func() bool {
		if stats, err = d.queue.Stats(); err != nil {
			return false
		}
		bar.left(unsent(stats), string(d.publisher.Stats().State))
		return unsent(stats) == 0
	})
	err = errors.Join(err, p.stop())
	if now, e := d.queue.Stats(); e == nil {
		stats = now
	}
	bar.end(unsent(stats))
	c.report(env, d, stats)
	if err == nil && !empty && unsent(stats) > 0 {
		cause := "interrupted"
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cause = fmt.Sprintf("not done within %s", c.Limit)
		}
		if last := d.publisher.Stats(); last.LastError != "" {
			cause += fmt.Sprintf("; last error: %s: %s", last.LastError, last.LastAdvice)
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
	fmt.Fprintf(env.stderr, "%d messages sent, %d left\n", d.publisher.Stats().ConfirmedTotal, unsent(left))
	if left.Dead+left.Partial+left.Staged > 0 {
		fmt.Fprintf(env.stderr, "not sent, and still in %s: %d dead letters, %d partial files, %d pieces of files with temporary names\n",
			c.Store, left.Dead, left.Partial, left.Staged)
	}
}
