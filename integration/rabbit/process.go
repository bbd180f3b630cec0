package rabbit

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"spoolfs/integration/subprocess"
)

// A process is a child of ours that dies with us.
type process struct{ *subprocess.Process }

func startProcess(cmd *exec.Cmd) (*process, error) {
	p, err := subprocess.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	return &process{p}, nil
}

func (p *process) pid() int { return p.Cmd.Process.Pid }

// await waits until the process is ready. It is an error if it ends before.
func (p *process) await(ctx context.Context, ready func() bool) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !ready() {
		select {
		case <-poll.C:
		case <-p.Done():
			return fmt.Errorf("ended before it was ready: %w", p.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// wait waits for the end of the process, and ends it when ctx does.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.kill())
	}
}

// terminate asks the process to end and waits for it and its descendants.
func (p *process) terminate(ctx context.Context) error {
	family := descendants(p.pid())
	// An error says that it is gone already.
	p.Cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.Done():
		return waitGone(family)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// kill ends the process and its descendants without a warning. The programs
// that the Erlang VM runs are in groups of their own, hence one by one.
func (p *process) kill() error {
	family := descendants(p.pid())
	p.KillGroup()
	for _, d := range family {
		d.kill()
	}
	<-p.Done()
	return waitGone(family)
}

func waitGone(family []procID) error {
	deadline := time.Now().Add(5 * time.Second)
	for _, d := range family {
		for d.alive() {
			if time.Now().After(deadline) {
				return errors.New("wait for the node's processes: still there after 5s")
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	return nil
}
