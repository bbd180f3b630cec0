package main

import "fmt"

// pauseCommand is "spoolfs pause".
type pauseCommand struct{ target }

// Help is shown by kong.
func (*pauseCommand) Help() string {
	return `Files are taken as before, and wait. A restart of the daemon ends the pause.

Examples:

    spoolfs pause
    spoolfs pause /run/spool
`
}

// Run is called by kong.
func (c *pauseCommand) Run(env *environment) error {
	return c.give(env, "pause", `publishes nothing until "spoolfs resume"`)
}

// resumeCommand is "spoolfs resume".
type resumeCommand struct{ target }

// Help is shown by kong.
func (*resumeCommand) Help() string {
	return `It also takes new files again after the word "drain" in .status/ctl.

Examples:

    spoolfs resume
`
}

// Run is called by kong.
func (c *resumeCommand) Run(env *environment) error { return c.give(env, "resume", "publishes") }

// retryCommand is "spoolfs retry".
type retryCommand struct{ target }

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

// give writes a word to ctl and says what that does.
func (t *target) give(env *environment, word, effect string) error {
	c, err := t.open(env)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.command(word); err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s: %s\n", c.mount.Mountpoint, effect)
	return nil
}
