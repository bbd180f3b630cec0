package scale

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// node is a spool: a route and its publisher. Its messages are numbered from 1 on.
type node struct {
	number int
	route  *queue.Route
	p      *publisher.Publisher
	random *rand.Rand
	last   atomic.Int64 // message that was made

	// For the score: the last message that the broker has worked at, and the last that
	// it has confirmed to somebody; what there was to do at the end of the outage, and
	// what of it is done.
	worked, confirmed, owed, paid int
}

func newNode(t testing.TB, b *broker, number int, route *queue.Route) *node {
	n := &node{number: number, route: route, random: rand.New(rand.NewPCG(b.settings.Seed, uint64(number)))}
	opts := b.settings.options(func(most time.Duration) time.Duration {
		return time.Duration(n.random.Int64N(int64(most) + 1))
	})
	opts.Route, opts.Logger = route, quiet
	opts.Dial = func(ctx context.Context) (publisher.Session, error) { return b.dial(ctx, n) }
	var err error
	if n.p, err = publisher.New(opts); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) made() int { return int(n.last.Load()) }

// make makes messages.
func (n *node) make(t testing.TB, count int) {
	file, messages := queue.NewFileID(), make([]queue.Message, count)
	for i := range messages {
		line := uint32(n.last.Add(1))
		messages[i] = queue.Message{ID: file.MessageID(line), Line: line, Ingested: time.Now()}
	}
	if err := n.route.Append(messages); err != nil {
		t.Error(err)
	}
}

// produce makes messages at an even rate, in batches, until ctx ends. The first batch
// comes at once.
func (n *node) produce(ctx context.Context, t testing.TB, s settings) {
	const batches = 20
	count := max(1, s.Backlog/batches)
	every := s.Outage * time.Duration(count) / time.Duration(s.Backlog)
	first := time.Duration(rand.New(rand.NewPCG(s.Seed+1, uint64(n.number))).Int64N(int64(every)))
	n.make(t, 1)
	for next := first; ; next = every {
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
			n.make(t, count)
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}
