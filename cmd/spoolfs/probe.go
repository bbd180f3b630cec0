package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// probe asks a part of the daemon for an answer from time to time, unless it is
// seen to work anyway. There is one question at a time: where nobody answers, the
// goroutine that has asked waits, and nobody waits for it.
type probe struct {
	every time.Duration
	limit time.Duration // from which on the lack of an answer counts
	ask   func(context.Context)

	mu       sync.Mutex // guards what follows
	answered time.Time  // last, or seen to work
	asked    time.Time  // of the question under way; zero when there is none
	activity uint64
}

// probeEvery is how often is asked. systemd's watchdog wants to hear something
// every 15 seconds if it is set to 30.
const probeEvery = 10 * time.Second

// step asks if it is time to. activity is a number that grows when the part is
// at work. A nil probe never asks.
func (p *probe) step(ctx context.Context, activity uint64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if activity != p.activity {
		p.activity, p.answered = activity, now
	}
	if !p.asked.IsZero() || now.Sub(p.answered) < p.every {
		return
	}
	p.asked = now
	go func() {
		p.ask(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked, p.answered = time.Time{}, time.Now()
	}()
}

// silent is how long a question has been without an answer, and nothing else has
// shown that the part works, once that is longer than the limit; else 0.
func (p *probe) silent(now time.Time) time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked.IsZero() {
		return 0
	}
	since := p.asked
	if p.answered.After(since) {
		since = p.answered
	}
	if took := now.Sub(since); took > p.limit {
		return took
	}
	return 0
}

// askMount has another process look up a status file, which goes through the
// kernel and back to us, and which needs the locks of all parts. Our own threads
// must not do that: one that waits for our own answer, when there is none, cannot
// be killed, and would keep the connection open that it waits for, and with it
// every writer. Nor is the process waited for that does not answer, but it is
// told to go.
func askMount(command func() *exec.Cmd) func(context.Context) {
	return func(ctx context.Context) {
		for ctx.Err() == nil {
			cmd := command()
			if err := cmd.Start(); err != nil {
				return // no answer of the mount
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			select {
			case err := <-done:
				if err == nil || !sleep(ctx, time.Second) {
					return
				}
			case <-ctx.Done():
				_ = cmd.Process.Kill() // it may have ended
				return
			}
		}
	}
}

// sleep waits, and reports whether ctx has not ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// probeOf is the other process.
func probeOf(mountpoint string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "probe", mountpoint)
	cmd.Env = []string{} // no flags of ours
	return cmd
}

// probeCommand is the other process of askMount.
type probeCommand struct {
	Mountpoint string `arg:"" help:"Where the spool is mounted."`
}

// Run is called by kong.
func (c *probeCommand) Run(*environment) error {
	name := filepath.Join(c.Mountpoint, ".status", "queue")
	info, err := os.Stat(name)
	if err == nil && info.Size() == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return withCode(exitUnavailable, fmt.Errorf("%s: %w", name, err))
	}
	return nil
}
