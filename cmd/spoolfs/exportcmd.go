package main

import (
	"errors"
	"fmt"

	"spoolfs/queue"
)

// exportCommand are the flags of "spoolfs export".
type exportCommand struct {
	Store  string `placeholder:"DIR" env:"-" help:"Store to read, which no daemon may serve, instead of a spool that is mounted."`
	Format string `default:"bundle" enum:"bundle,diskqueue" env:"-" help:"bundle, with all that is known of each message, or diskqueue, a retry file of sr3, with the v03 messages that wait (${default})."`
	target
}

// Help is shown by kong.
func (*exportCommand) Help() string {
	return `What is ready, delayed, dead or partial is written; nothing is removed. To move
messages from one node to another, use "spoolfs drain --to".

A spool that is mounted goes on meanwhile. What is in it all the time, and does
not change its state, is written once. What is sent meanwhile may be written;
what becomes ready, delayed or dead may be missing, or be there twice with the
same id. To have it whole, pause the daemon first.

Examples:

    spoolfs export --store /recovered/spoolfs > bundle
    spoolfs import /run/spool < bundle
    spoolfs pause && spoolfs export > bundle && spoolfs resume
`
}

// Run is called by kong.
func (c *exportCommand) Run(env *environment) error {
	switch {
	case c.Store == "":
		return c.exportLive(env)
	case c.Mountpoint != "":
		return withCode(exitUsage, errors.New("--store=DIR and a mountpoint: give one of them"))
	}
	s, err := openOffline(env, c.Store, false)
	if errors.Is(err, queue.ErrLocked) {
		return withCode(codeOf(err), fmt.Errorf("%w: export the spool that it serves instead, with \"spoolfs export MOUNTPOINT\"", err))
	}
	if err != nil {
		return err
	}
	return errors.Join(c.exportStore(env, s), s.close())
}

// exportRoute writes what a route holds.
func exportRoute(w *exportWriter, route *queue.Route) error {
	for _, state := range bundleStates {
		for e, err := range route.Entries(state.state, queue.Place{}) {
			if err != nil {
				return withCode(exitIO, fmt.Errorf("export: %w", err))
			}
			if err := w.message(route.Name(), state.name, e.Message); err != nil {
				return err
			}
		}
	}
	return nil
}

// exportStore writes what a store holds.
func (c *exportCommand) exportStore(env *environment, s *offlineStore) error {
	w := newExportWriter(env.stdout, c.Format, c.Store)
	for _, route := range s.Routes() {
		if err := exportRoute(w, route); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	if s.held > 0 {
		fmt.Fprintf(env.stderr, "not exported: %d files with temporary names, and directories\n", s.held)
	}
	return w.verdict()
}
