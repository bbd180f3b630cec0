package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"spoolfs/integration/subprocess"
)

// process is a server that runs until it is stopped, and ends with us.
type process struct {
	*subprocess.Process
	log string // path of what it prints
}

// stopTime is how long a server may take to end.
const stopTime = 2 * time.Minute

// startProcess runs a program, whose output goes to a file.
func startProcess(log string, cmd *exec.Cmd) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	p, err := subprocess.Start(cmd, syscall.SIGTERM)
	return &process{p, log}, err
}

// until waits for a condition. It fails when the process ends before, or after a
// while.
func (p *process) until(what string, limit time.Duration, cond func() bool) error {
	ticker := time.NewTicker(pollTime)
	defer ticker.Stop()
	deadline := time.After(limit)
	for !cond() {
		select {
		case <-ticker.C:
		case <-p.Done():
			return fmt.Errorf("%s ended before it was %s: %v\n%s", p.Args[0], what, p.Err(), p.output())
		case <-deadline:
			return fmt.Errorf("%s was not %s within %s\n%s", p.Args[0], what, limit, p.output())
		}
	}
	return nil
}

// pollTime is how often something is looked at: a time that is measured is at
// most that much too long.
const pollTime = 5 * time.Millisecond

func (p *process) output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// saysReady reports whether a server has printed "ready".
func (p *process) saysReady() bool { return strings.Contains(p.output(), "ready") }

// stop ends the process as an operator does.
func (p *process) stop() error {
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.Done():
	case <-time.After(stopTime):
		p.KillGroup()
		<-p.Done()
		return fmt.Errorf("%s did not end within %s", p.Args[0], stopTime)
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("%s: %w\n%s", p.Args[0], err, p.output())
	}
	return nil
}

// family is the process with its descendants.
func (p *process) family() []int {
	pids := []int{p.Cmd.Process.Pid}
	for i := 0; i < len(pids); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pids[i]))
		for _, list := range lists {
			text, _ := os.ReadFile(list) // a thread may have ended
			for _, word := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(word); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}

// cpu is the time that the process and its descendants have used.
func (p *process) cpu() time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on all machines of Linux that run Go
	var ticks time.Duration
	for _, pid := range p.family() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		for i := 11; i < 13 && i < len(fields); i++ { // utime, stime
			n, _ := strconv.Atoi(fields[i])
			ticks += time.Duration(n)
		}
	}
	return ticks * tick
}

// memory is how much of a field of /proc/<pid>/status the process and its
// descendants take, in bytes.
func (p *process) memory(field string) int {
	sum := 0
	for _, pid := range p.family() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, _ := strings.Cut(string(text), "\n"+field+":")
		var kib int
		fmt.Sscan(rest, &kib)
		sum += kib << 10
	}
	return sum
}
