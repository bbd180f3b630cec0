package fs

import (
	"sync"
	"sync/atomic"
)

// crew are goroutines for what may wait for the disk. Some are kept for the next
// one: a fresh goroutine grows its stack anew on the way to the store.
type crew struct {
	todo  chan func()
	ended chan struct{}
	once  sync.Once // for ended
	keeps atomic.Bool
	idle  atomic.Int64
}

// maxIdle is how many goroutines are kept.
const maxIdle = 64

func newCrew() *crew { return &crew{todo: make(chan func()), ended: make(chan struct{})} }

// start has the crew keep goroutines from now on.
func (c *crew) start() { c.keeps.Store(true) }

// do has f run, and does not wait for it. A crew that is nil, or has not started, or
// has ended, does it as well, and keeps nobody.
func (c *crew) do(f func()) {
	if c == nil {
		go f()
		return
	}
	select {
	case c.todo <- f: // somebody is idle
	default:
		go c.serve(f)
	}
}

// serve does what there is to do, until there are enough others who are idle.
func (c *crew) serve(f func()) {
	for {
		f()
		if !c.keeps.Load() {
			return
		}
		if c.idle.Add(1) > maxIdle {
			c.idle.Add(-1)
			return
		}
		select {
		case f = <-c.todo:
			c.idle.Add(-1)
		case <-c.ended:
			return
		}
	}
}

// end lets go of those who are idle. What is being done goes on, and it may be
// called twice.
func (c *crew) end() { c.once.Do(func() { close(c.ended) }) }
