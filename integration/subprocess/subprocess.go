// Package subprocess starts processes that end with the one that started them.
package subprocess

import (
	"os/exec"
	"runtime"
	"syscall"
)

// A Process is a child in a process group of its own, so that Ctrl-C reaches its
// parent alone, which then ends all in good order.
type Process struct {
	*exec.Cmd
	done chan struct{}
	err  error
}

// Start runs a command. When this process ends before it, it gets the signal
// onDeath. The kernel sends that when the thread that started the child ends, not
// the process (prctl(2), PR_SET_PDEATHSIG), so that thread waits for the child.
//
// Errors: those of [exec.Cmd.Start].
func Start(cmd *exec.Cmd, onDeath syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = onDeath
	p := &Process{Cmd: cmd, done: make(chan struct{})}
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

// Done is closed when the process has ended and been waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end of the process, and returns the error of it, as
// [exec.Cmd.Wait] does.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Alive reports whether the process has not been waited for yet.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// KillGroup ends the process and its group without a warning, and does not wait:
// one that waits for a FUSE daemon ends no sooner than that answers or dies. One
// that has ended is let be, since its number may be another's by now.
func (p *Process) KillGroup() {
	if p.Alive() {
		syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
	}
}
