package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// statusCommand are the flags of "spoolfs status".
type statusCommand struct {
	JSON bool `name:"json" help:"Print status.json instead of the summary."`

	Mountpoint string `arg:"" help:"Where the spool is mounted."`
}

// Run is called by kong.
func (c *statusCommand) Run(env *environment) error {
	name := "summary"
	if c.JSON {
		name = "status.json"
	}
	text, err := os.ReadFile(filepath.Join(c.Mountpoint, ".status", name))
	switch {
	case errors.Is(err, syscall.ENOTCONN):
		return withCode(exitUnavailable, fmt.Errorf("the daemon of %s is gone: start it again with \"spoolfs mount\"", c.Mountpoint))
	case errors.Is(err, os.ErrNotExist):
		return withCode(exitUnavailable, fmt.Errorf("no spool is mounted on %s", c.Mountpoint))
	case err != nil:
		return withCode(exitIO, err)
	}
	_, err = env.stdout.Write(text)
	return err
}
