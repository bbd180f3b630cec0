package publisher

import (
	"context"
	"sync"
)

// Paused is the State while an operator has the publisher paused and nothing is
// under way any more.
const Paused State = "paused"

// control is what an operator has said.
type control struct {
	mu      sync.Mutex // guards what follows
	paused  bool
	resumed chan struct{}      // closed by Resume; nil while not paused
	stop    context.CancelFunc // of the work under way; nil while there is none
	next    *Options           // of a Reconfigure that has not begun
}

// Pause stops publishing until Resume: what is in flight has StopTimeout to be
// confirmed, the rest is ready again, and the session is closed. It does not
// wait for that. A pause does not outlive the process.
func (p *Publisher) Pause() {
	p.pause()
	p.team.hold(true)
}

func (p *Publisher) pause() {
	c := &p.control
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return
	}
	c.paused, c.resumed = true, make(chan struct{})
	if c.stop != nil {
		c.stop()
	}
}

// Resume ends a pause.
func (p *Publisher) Resume() {
	p.resume()
	p.team.hold(false)
}

func (p *Publisher) resume() {
	c := &p.control
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		c.paused = false
		close(c.resumed)
		c.resumed = nil
	}
}

// Run publishes until ctx ends, and returns nil then. An error is that the queue
// has closed.
//
// The end of ctx is a soft stop: what is in flight has StopTimeout to be
// confirmed, the rest is ready again. Abort makes a hard stop of it.
func (p *Publisher) Run(ctx context.Context) error { return p.team.run(ctx, p.run) }

// run is Run of one worker.
func (p *Publisher) run(ctx context.Context) error {
	for {
		if !p.control.isHeld() {
			p.adopt()
		}
		working, stop, resumed := p.control.begin(ctx)
		if working == nil {
			select {
			case <-resumed:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		err := p.work(working)
		stop()
		p.control.end()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// begin returns a context for work that a pause ends, or, while there is one,
// what tells of its end.
func (c *control) begin(ctx context.Context) (context.Context, context.CancelFunc, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return nil, nil, c.resumed
	}
	if c.next != nil { // since adopt
		return nil, nil, closed
	}
	working, stop := context.WithCancel(ctx)
	c.stop = stop
	return working, stop, nil
}

// end says that the work has ended.
func (c *control) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = nil
}

// isHeld reports whether an operator has the publisher paused.
func (c *control) isHeld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}

// isPaused reports whether an operator has the publisher paused, and nothing is
// under way any more.
func (c *control) isPaused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused && c.stop == nil
}
