package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"
)

// janitorCommand are the flags of "spoolfs janitor".
type janitorCommand struct {
	Directories []string `arg:"" optional:"" name:"directory" env:"SPOOLFS_JANITOR" sep:"none" help:"Directories to empty, such as those of Sarracenia's retry files, if not those of janitor in the configuration. Several janitors may work in one."`

	storeFlags   `embed:""`
	janitorFlags `embed:""`

	Once  bool          `config:"-" help:"End when the directories are empty and all is sent, for job scripts."`
	Limit time.Duration `config:"-" help:"With --once: end after this time in any case, with exit code 75 (no limit)."`
}

// AfterApply is called by kong when all values are set. Directories that are not
// named are those of the files.
func (c *janitorCommand) AfterApply(ctx *kong.Context) error {
	if err := c.storeFlags.AfterApply(ctx); err != nil {
		return err
	}
	if s, inFile := c.files.settings["janitor"]; inFile && len(c.Directories) == 0 {
		c.Directories = s.texts()
	}
	return nil
}

// Run is called by kong.
func (c *janitorCommand) Run(env *environment) error {
	if err := c.janitorFlags.check(); err != nil {
		return c.origins.placed(err)
	}
	if len(c.Directories) == 0 {
		return withCode(exitUsage, errors.New("no directory is given: name those to empty on the command line, or as janitor in the configuration"))
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
		s, err := d.routes.stats()
		return err == nil && unsent(s) == 0
	})
	if err == nil && !done && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = withCode(exitTemporary, fmt.Errorf("not done within %s: what is left is safe, in the store or where it was; run it again", c.Limit))
	}
	return err
}
