package keeper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// worker is a process that serves, or is about to.
type worker struct {
	process *os.Process
	control *Control
	started time.Time
	since   time.Duration // started, by the clock of the memory
	ready   time.Time     // zero until then
	binary  string

	messages chan Message // closed when the worker has closed its end
	exited   chan *os.ProcessState

	deaf   bool   // nothing more will come from it
	reason Reason // it has said that it ends
	cause  string // and why it cannot go on
	hung   bool   // we have killed it, because of a request
	silent bool   // we have killed it, because it said nothing
	quiet  int    // looks since it was heard last
}

// startWorker starts a program as a worker. The calling thread must live as long
// as the worker, which is killed at its end.
func startWorker(binary, dir string, device, memory int, attr *syscall.SysProcAttr) (*worker, error) {
	control, theirs, err := controlPair()
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs)
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	defer null.Close()
	// Not os/exec: its files would become blocking, and the device is shared.
	pid, err := syscall.ForkExec(binary, []string{binary, "worker", dir}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(),
		Files: []uintptr{null.Fd(), 1, 2, uintptr(device), uintptr(memory), uintptr(theirs)},
		Sys:   attr,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", binary, err), control.Close())
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	w := &worker{
		process: process, control: control, binary: binary, started: time.Now(),
		messages: make(chan Message, 16), exited: make(chan *os.ProcessState, 1),
	}
	go w.listen()
	go w.wait()
	return w, nil
}

// listen passes messages on until the worker has closed its end.
func (w *worker) listen() {
	defer close(w.messages)
	for {
		m, err := w.control.Receive()
		if err != nil {
			return
		}
		w.messages <- m
	}
}

func (w *worker) wait() {
	state, err := w.process.Wait()
	if err != nil {
		state = nil // somebody else has waited for it
	}
	w.exited <- state
}

// drainMessages returns what the worker has said before it ended.
func (w *worker) drainMessages() {
	for m := range w.messages {
		if m.Kind == KindEnded {
			w.hasEnded(m)
		}
	}
	w.control.Close()
}

func (w *worker) hasEnded(m Message) { w.reason, w.cause = m.Reason, m.Cause }

// kill ends the worker as a crash does.
func (w *worker) kill() {
	// That it is dead already is fine.
	if err := w.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return
	}
}

// end is how a worker has ended.
type end struct {
	cause   string // for people
	code    int    // of the exit; -1 after a signal
	foreign bool   // not of its own making
}

func (w *worker) end(state *os.ProcessState) end {
	if state == nil {
		return end{"unknown", -1, true}
	}
	status := state.Sys().(syscall.WaitStatus)
	switch {
	case w.hung:
		return end{"hung, and was killed", -1, false}
	case w.silent:
		return end{"silent, and was killed", -1, true}
	case status.Signaled():
		s := status.Signal()
		return end{"signal " + strconv.Itoa(int(s)) + " (" + s.String() + ")", -1, s == syscall.SIGKILL}
	default:
		return end{"exit code " + strconv.Itoa(status.ExitStatus()), status.ExitStatus(), false}
	}
}

// tell sends a message. What cannot be told, as to a worker that dies or hangs,
// shows in other ways.
func (w *worker) tell(m Message) error {
	err := w.control.Send(m)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
