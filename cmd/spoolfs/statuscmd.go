package main

import (
	"errors"
	"fmt"
	"time"
)

// statusCommand is "spoolfs status".
type statusCommand struct {
	JSON     bool          `name:"json" env:"-" help:"Print status.json instead of the summary; with --watch as a line each time."`
	Watch    bool          `env:"-" help:"Show it live, until q or Ctrl-C. Without a terminal, print a line each time."`
	Interval time.Duration `default:"1s" env:"-" placeholder:"DURATION" help:"How often, with --watch (${default})."`
	Check    bool          `env:"-" help:"Judge it for monitoring: one line, and exit code 0 (OK), 1 (warning), 2 (critical) or 3 (unknown)."`

	thresholds `embed:""`
	target
}

// Help is shown by kong.
func (*statusCommand) Help() string {
	return `Examples:

    spoolfs status
    spoolfs status --watch /run/spool
    spoolfs status --json | jq .queue.ready
    spoolfs status --check --warn-age=10m --crit-age=2h --crit-waiting=1000000
`
}

// Run is called by kong.
func (c *statusCommand) Run(env *environment) error {
	if err := c.checkFlags(); err != nil {
		return err
	}
	if c.Check {
		return c.judge(env)
	}
	cl, err := c.open(env)
	if err != nil {
		return err
	}
	defer cl.close()
	if c.Watch {
		return c.watch(env, cl)
	}
	name := "summary"
	if c.JSON {
		name = "status.json"
	}
	text, err := cl.read(name)
	if err != nil {
		return err
	}
	if _, err = env.stdout.Write(text); err != nil {
		return withCode(exitIO, err)
	}
	return nil
}

func (c *statusCommand) checkFlags() error {
	switch {
	case c.Watch && c.Check:
		return withCode(exitUsage, errors.New("--watch and --check: give one of them"))
	case c.thresholds != (thresholds{}) && !c.Check:
		return withCode(exitUsage, errors.New("the thresholds belong to --check"))
	case c.Interval < 100*time.Millisecond:
		return withCode(exitUsage, fmt.Errorf("--interval=%s: want at least 100ms", c.Interval))
	}
	return c.thresholds.check()
}
