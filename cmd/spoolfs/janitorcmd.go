package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// janitorCommand are the flags of "spoolfs janitor".
type janitorCommand struct {
	Directories []string `arg:"" name:"directory" help:"Directories to empty, such as those of Sarracenia's retry files. Several janitors may work in one."`

	storeFlags   `embed:""`
	janitorFlags `embed:""`

	Once  bool          `help:"End when the directories are empty and all is sent, for job scripts."`
	Limit time.Duration `help:"With --once: end after this time in any case, with exit code 75 (no limit)."`
}

// Run is called by kong.
func (c *janitorCommand) Run(env *environment) error {
	if err := c.janitorFlags.check(); err != nil {
		return err
	}
	d, err := c.open(env)
	if err != nil {
		return err
	}
	return errors.Join(c.work(env.ctx, d), d.close())
}

func (c *janitorCommand) work(ctx context.Context, d *daemon) error {
	js, err := d.newJanitors(c.Directories, c.janitorFlags)
	if err != nil {
		return err
	}
	publishing := d.startPublishing()
	js.start()
	d.log.Info("ready", "directories", len(js.all), "store", d.flags.Store, "broker", d.flags.masked(), "exchange", d.flags.Exchange, "version", version())
	err = c.await(ctx, d, js, publishing)
	err = errors.Join(err, js.close())
	if ctx.Err() != nil {
		d.log.Info("stopping", "cause", context.Cause(ctx))
		d.drain()
	}
	err = errors.Join(err, publishing.stop())
	s := js.stats()
	d.log.Info("stopped", "files", s.FilesTotal, "messages", s.MessagesTotal, "dead", s.DeadTotal, "quarantined", s.QuarantinedTotal)
	return err
}

// await waits for a signal or, if the work is to be done once, for its end.
func (c *janitorCommand) await(ctx context.Context, d *daemon, js *janitors, p *publishing) error {
	if c.Once && c.Limit > 0 {
		limited, cancel := context.WithTimeout(ctx, c.Limit)
		defer cancel()
		ctx = limited
	}
	done, err := p.until(ctx, func() bool {
		if !c.Once || !js.areDone() {
			return false
		}
		s, err := d.queue.Stats()
		return err == nil && unsent(s) == 0
	})
	if err == nil && !done && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = withCode(exitTemporary, fmt.Errorf("not done within %s: what is left is safe, in the store or where it was; run it again", c.Limit))
	}
	return err
}
