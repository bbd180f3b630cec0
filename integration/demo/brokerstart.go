package main

import (
	"context"
	"time"
)

// brokerStart is a start of the broker that goes on while something else is
// done.
type brokerStart struct {
	cancel context.CancelCauseFunc
	ended  chan struct{}
	err    error     // valid after ended
	up     time.Time // valid after ended
}

// startBroker begins to start the broker. The context that it returns ends when
// that fails.
func (d *demo) startBroker(ctx context.Context) (context.Context, *brokerStart) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &brokerStart{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		if s.err = d.node.Start(ctx); s.err != nil {
			cancel(s.err)
		}
		s.up = time.Now()
	}()
	return ctx, s
}

func (s *brokerStart) done() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// wait waits for the end of the start, and gives it up if there is a reason.
func (s *brokerStart) wait(reason error) error {
	if reason != nil {
		s.cancel(reason)
	}
	<-s.ended
	s.cancel(nil)
	return s.err
}
