package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// A child is a process of the demo. It has a process group of its own, so that
// Ctrl-C reaches the demo alone, which then ends all in good order.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has been waited for
	err  error         // of its end; valid after done
}

// startChild runs cmd. If the demo is killed, the child gets the signal
// onDeath. The kernel sends that when the thread that started the child ends,
// not the process, so that thread waits for the child.
func startChild(cmd *exec.Cmd, onDeath syscall.Signal) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onDeath}
	cmd.WaitDelay = time.Second // for a descendant that holds a pipe
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// wait waits for the end of the child, or of ctx.
func (c *child) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// terminate asks the child to end, and kills it when ctx ends before it does.
func (c *child) terminate(ctx context.Context) error {
	c.cmd.Process.Signal(syscall.SIGTERM) // an error says that it is gone
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		c.kill()
		<-c.done
		return fmt.Errorf("killed, since it did not end after SIGTERM: %w", context.Cause(ctx))
	}
}

// kill ends the child and its group without a warning. One that waits for a
// FUSE daemon ends no sooner than that answers or dies, so kill does not wait.
func (c *child) kill() {
	select {
	case <-c.done: // its number may be another's by now
	default:
		syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	}
}
