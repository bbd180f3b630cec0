package main

import (
	"fmt"
	"net/url"
	"strings"
)

// pauseCommand is "spoolfs pause".
type pauseCommand struct{ routeTarget }

// Help is shown by kong.
func (*pauseCommand) Help() string {
	return `Files are taken as before, and wait. A restart of the daemon ends the pause.

Examples:

    spoolfs pause
    spoolfs pause --route=mirror /run/spool
`
}

// Run is called by kong.
func (c *pauseCommand) Run(env *environment) error {
	return c.give(env, "pause", `publishes nothing until "spoolfs resume"`)
}

// resumeCommand is "spoolfs resume".
type resumeCommand struct{ routeTarget }

// Help is shown by kong.
func (*resumeCommand) Help() string {
	return `Without --route it also takes new files again after the word "drain" in
.status/ctl.

Examples:

    spoolfs resume
`
}

// Run is called by kong.
func (c *resumeCommand) Run(env *environment) error { return c.give(env, "resume", "publishes") }

// retryCommand is "spoolfs retry".
type retryCommand struct{ routeTarget }

// Help is shown by kong.
func (*retryCommand) Help() string {
	return `For when you have mended the broker and do not want to wait for the next
attempt, which is at most 30 seconds away, or for messages that it has
refused, which wait up to ten minutes.

Examples:

    spoolfs retry && spoolfs status
`
}

// Run is called by kong.
func (c *retryCommand) Run(env *environment) error {
	return c.give(env, "retry", "tries the broker, and what is delayed, now")
}

// routeTarget are the arguments of commands that may be for one route.
type routeTarget struct {
	Route  string `placeholder:"NAME" env:"-" help:"This route (all routes)."`
	target `embed:""`
}

// give writes a word to ctl and says what that does.
func (t *routeTarget) give(env *environment, word, effect string) error {
	c, err := t.open(env)
	if err != nil {
		return err
	}
	defer c.close()
	where := c.mount.Mountpoint
	if t.Route != "" {
		if _, err := c.activeRoute(t.Route); err != nil {
			return err
		}
		word += " route=" + url.QueryEscape(t.Route)
		where += ", route " + t.Route
	}
	if err := c.command(word); err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s: %s\n", where, effect)
	return nil
}

// activeRoute is what the daemon says of a route, which must be in its
// configuration.
func (c *client) activeRoute(name string) (routeStatus, error) {
	s, err := c.status()
	if err != nil {
		return routeStatus{}, err
	}
	if !s.isActive(name) {
		return routeStatus{}, withCode(exitUsage, fmt.Errorf("there is no route %q in the configuration; there are: %s", name, strings.Join(s.activeRoutes(), " ")))
	}
	return s.Routes[name], nil
}
