package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// errHung says that there was no answer in time.
var errHung = errors.New("no answer")

// accessor asks an access server, which it starts, and bounds how long an answer
// may take.
type accessor struct {
	within time.Duration
	child  *accessChild
	killed *accessChild // did not answer in time, and may not be gone yet
}

// accessChild is a running access server.
type accessChild struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	send *gob.Encoder
	recv *gob.Decoder
	gone chan struct{}
}

func startAccessChild() (*accessChild, error) {
	c := &accessChild{gone: make(chan struct{})}
	// Not by its path, which may not be there any more after an upgrade.
	c.cmd = exec.Command("/proc/self/exe", "access-server")
	c.cmd.Args[0] = os.Args[0]
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the access server: %w", err)
	}
	c.in, c.send, c.recv = in, gob.NewEncoder(in), gob.NewDecoder(out)
	return c, nil
}

// exchange sends a request and waits for the answer. Only one may be under way.
func (c *accessChild) exchange(r accessRequest) (a accessReply, err error) {
	if err = c.send.Encode(r); err == nil {
		err = c.recv.Decode(&a)
	}
	if err != nil {
		err = fmt.Errorf("ask the access server: %w", err)
	}
	return a, err
}

// kill ends the child, and waits for that in the background: a request that the
// daemon has taken holds it.
func (c *accessChild) kill() {
	_ = c.cmd.Process.Kill() // it may be gone
	go func() {
		defer close(c.gone)
		_ = c.cmd.Wait() // killed
	}()
}

func (c *accessChild) isGone() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// do has a request answered.
//
// Errors: errHung, what ctx says, or an errno.
func (a *accessor) do(ctx context.Context, r accessRequest) (accessReply, error) {
	if a.killed != nil && !a.killed.isGone() {
		return accessReply{}, errHung
	}
	if a.child == nil {
		var err error
		if a.child, err = startAccessChild(); err != nil {
			return accessReply{}, err
		}
	}
	type result struct {
		accessReply
		error
	}
	done := make(chan result, 1)
	child := a.child
	go func() {
		reply, err := child.exchange(r)
		done <- result{reply, err}
	}()
	timer := time.NewTimer(a.within)
	defer timer.Stop()
	var err error
	select {
	case got := <-done:
		if got.error == nil {
			return got.accessReply, got.accessReply.err()
		}
		err = got.error
	case <-timer.C:
		err = errHung
	case <-ctx.Done():
		err = ctx.Err()
	}
	a.abandon()
	return accessReply{}, err
}

// abandon gives the child up.
func (a *accessor) abandon() {
	if a.child != nil {
		a.child.kill()
		a.killed, a.child = a.child, nil
	}
}

// close ends the child.
func (a *accessor) close() {
	if a.child != nil {
		a.child.in.Close()
		a.abandon()
	}
}

func (r accessReply) err() error {
	switch {
	case r.Errno != 0:
		return r.Errno
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
}
