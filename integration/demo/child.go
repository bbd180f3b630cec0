package main

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"spoolfs/integration/subprocess"
)

// A child is a process of the demo.
type child struct{ *subprocess.Process }

// startChild runs cmd. If the demo is killed, the child gets the signal onDeath.
func startChild(cmd *exec.Cmd, onDeath syscall.Signal) (*child, error) {
	cmd.WaitDelay = time.Second // for a descendant that holds a pipe
	p, err := subprocess.Start(cmd, onDeath)
	if err != nil {
		return nil, err
	}
	return &child{p}, nil
}

// wait waits for the end of the child, or of ctx.
func (c *child) wait(ctx context.Context) error {
	select {
	case <-c.Done():
		return c.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// terminate asks the child to end, and kills it when ctx ends before it does.
func (c *child) terminate(ctx context.Context) error {
	c.Cmd.Process.Signal(syscall.SIGTERM) // an error says that it is gone
	select {
	case <-c.Done():
		return c.Err()
	case <-ctx.Done():
		c.KillGroup()
		<-c.Done()
		return fmt.Errorf("killed, since it did not end after SIGTERM: %w", context.Cause(ctx))
	}
}
