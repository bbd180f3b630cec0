package rabbit

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// A process is a child of ours that dies with us, in a process group of its
// own.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has been waited for
	err  error         // of its end; valid after done
}

// startProcess runs cmd. The kernel sends Pdeathsig when the thread that
// started the child ends, not the process, so that thread waits for the child.
func startProcess(cmd *exec.Cmd) (*process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL

	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// await waits until the process is ready. It is an error if it ends before.
func (p *process) await(ctx context.Context, ready func() bool) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !ready() {
		select {
		case <-poll.C:
		case <-p.done:
			return fmt.Errorf("ended before it was ready: %w", p.err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// wait waits for the end of the process, and ends it when ctx does.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), p.kill())
	}
}

// terminate asks the process to end and waits for it and its descendants.
func (p *process) terminate(ctx context.Context) error {
	family := descendants(p.pid())
	// An error says that it is gone already.
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return waitGone(family)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// kill ends the process and its descendants without a warning. The programs
// that the Erlang VM runs are in groups of their own, hence one by one.
func (p *process) kill() error {
	family := descendants(p.pid())
	if p.alive() {
		syscall.Kill(-p.pid(), syscall.SIGKILL)
	}
	for _, d := range family {
		d.kill()
	}
	<-p.done
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
