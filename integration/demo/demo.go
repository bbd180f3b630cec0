package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"spoolfs/integration/rabbit"
)

const (
	exchange  = "xpublic"
	queueName = "demo"

	timeLimit  = 4 * time.Minute // of the whole, on a very slow machine
	stopLimit  = 25 * time.Second
	writeLimit = time.Minute
	drainLimit = 2 * time.Minute
)

// demo is one performance.
type demo struct {
	opts   options
	screen *screen
	began  time.Time

	node    *rabbit.Node
	queue   rabbit.Queue
	spool   *spool
	jobs    []job
	writers *writers
	ls      *child
}

// play performs, and cleans up whatever happens.
func play(ctx context.Context, opts options, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, timeLimit, fmt.Errorf("not done after %s", timeLimit))
	defer stop()
	d := &demo{opts: opts, screen: newScreen(w, cancel), began: time.Now()}
	err := d.perform(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		d.screen.say("\nInterrupted. Cleaning up.")
	} else {
		d.screen.say("\nThat did not work. Cleaning up.")
		err = fmt.Errorf("%w%s", err, d.spool.logTail())
	}
	return errors.Join(err, d.close())
}

// perform does one step after the other.
func (d *demo) perform(ctx context.Context) error {
	d.screen.title("spoolfs: %s messages, written while the broker is away", grouped(d.opts.files))
	for _, step := range []func(context.Context) error{
		d.prepareBroker, d.mount, d.write, d.look, d.deliver, d.count, d.finish,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close leaves nothing, whatever has happened. A process that waits for the
// mount ends with the daemon, so that comes before the wait.
func (d *demo) close() error {
	var errs []error
	d.writers.kill()
	if d.ls != nil {
		d.ls.KillGroup()
	}
	if d.spool != nil {
		errs = append(errs, d.spool.close())
	}
	d.writers.wait()
	if d.ls != nil {
		<-d.ls.Done()
	}
	if d.node != nil {
		errs = append(errs, d.node.Close())
	}
	return errors.Join(errs...)
}
