package amqp

import (
	"sync"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/queue"
)

var _ confirmation = (*amqp091.DeferredConfirmation)(nil)

// confirmation is what the library makes of the broker's confirm: an ack, or
// a nack or the end of the channel.
type confirmation interface {
	Done() <-chan struct{}
	Acked() bool
}

// pending is a publication without a verdict.
type pending struct {
	tag     uint64
	id      queue.ID
	confirm confirmation
}

// inflight are the pending publications in their order. One goroutine pushes,
// another pops.
type inflight struct {
	more chan struct{} // has something in it when a push came after a failed pop

	mu     sync.Mutex
	pushed []pending

	// popped are those that pop took from pushed; the first is the next. The
	// two change places, so that they are not allocated again and again.
	popped []pending
	next   int
}

func newInflight() *inflight {
	return &inflight{more: make(chan struct{}, 1)}
}

func (f *inflight) push(p pending) {
	f.mu.Lock()
	f.pushed = append(f.pushed, p)
	f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
}

func (f *inflight) pop() (pending, bool) {
	if f.next == len(f.popped) {
		f.swap()
	}
	if f.next == len(f.popped) {
		return pending{}, false
	}
	p := f.popped[f.next]
	f.popped[f.next] = pending{} // for the garbage collector
	f.next++
	return p, true
}

func (f *inflight) swap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.popped, f.pushed = f.pushed, f.popped[:0]
	f.next = 0
}
