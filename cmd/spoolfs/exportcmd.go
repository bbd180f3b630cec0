package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"spoolfs/queue"
)

// exportCommand are the flags of "spoolfs export".
type exportCommand struct {
	Store  string `required:"" placeholder:"DIR" help:"Store to read. No daemon may serve it."`
	Format string `default:"bundle" enum:"bundle,diskqueue" env:"-" help:"bundle, with all that is known of each message, or diskqueue, a retry file of sr3, with the v03 messages that wait (${default})."`
}

// Help is shown by kong.
func (*exportCommand) Help() string {
	return `What is ready, delayed, dead or partial is written in this order; nothing is
removed. To move messages from one node to another, use "spoolfs drain --to".

Examples:

    spoolfs export --store /recovered/spoolfs > bundle
    spoolfs import /run/spool < bundle
`
}

// Run is called by kong.
func (c *exportCommand) Run(env *environment) error {
	s, err := openOffline(env, c.Store, false)
	if err != nil {
		return err
	}
	return errors.Join(c.export(env, s), s.close())
}

func (c *exportCommand) export(env *environment, s *offlineStore) error {
	out := bufio.NewWriterSize(env.stdout, 1<<20)
	var err error
	left := 0
	if c.Format == "bundle" {
		err = writeBundle(out, s.route, c.Store)
	} else {
		left, err = writeDiskqueue(out, s.route)
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		return withCode(exitIO, fmt.Errorf("export: %w", err))
	}
	if s.held > 0 {
		fmt.Fprintf(env.stderr, "not exported: %d files with temporary names, and directories\n", s.held)
	}
	if left > 0 {
		return withCode(exitData, fmt.Errorf("%d messages are none that a retry file of sr3 can hold: export them as a bundle", left))
	}
	return nil
}

// writeBundle writes the messages of a route.
func writeBundle(out io.Writer, r *queue.Route, from string) error {
	if _, err := out.Write(newBundleHead(queue.NewFileID(), from)); err != nil {
		return err
	}
	for _, state := range bundleStates {
		for e, err := range r.Entries(state.state, queue.Place{}) {
			if err != nil {
				return err
			}
			if _, err := out.Write(bundleLine(r.Name(), state.name, e.Message)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeDiskqueue writes the messages of a route that wait, and counts those that
// cannot be written so.
func writeDiskqueue(out io.Writer, r *queue.Route) (left int, err error) {
	for _, state := range []queue.State{queue.Pending, queue.Delayed} {
		for e, err := range r.Entries(state, queue.Place{}) {
			if err != nil {
				return left, err
			}
			line, ok := diskqueueLine(e.Message)
			if !ok {
				left++
				continue
			}
			if _, err := out.Write(line); err != nil {
				return left, err
			}
		}
	}
	return left, nil
}
