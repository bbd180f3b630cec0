package scale

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"spoolfs/queue"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// routesOfStore is how many nodes share a store. A route has its own publisher and
// knows nothing of the others; a store for each node would cost more time than it shows.
const routesOfStore = 20

// world is many nodes and a broker.
type world struct {
	t        *testing.T
	settings settings
	broker   *broker
	stores   []*queue.Queue
	nodes    []*node
	running  sync.WaitGroup
}

// simulate has a world live through an outage.
func simulate(t *testing.T, s settings) (r result) {
	s.ensureDefaults()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, settings: s, broker: newBroker(s)}
		w.populate()
		ctx, stop := context.WithCancel(t.Context())
		for _, n := range w.nodes {
			w.running.Go(func() {
				if err := n.p.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		w.connect(ctx)
		r = w.outage(ctx)
		for _, n := range w.nodes {
			n.p.Abort()
		}
		stop()
		w.running.Wait()
		for _, q := range w.stores {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return r
}

// populate makes the nodes.
func (w *world) populate() {
	for i := range w.settings.Nodes {
		if i%routesOfStore == 0 {
			q, _, err := queue.Open(fmt.Sprintf("store-%d", i), queue.Options{Logger: quiet, FS: vfs.NewMem()})
			if err != nil {
				w.t.Fatal(err)
			}
			w.stores = append(w.stores, q)
		}
		route, err := w.stores[len(w.stores)-1].Route(fmt.Sprintf("node%d", i))
		if err != nil {
			w.t.Fatal(err)
		}
		w.nodes = append(w.nodes, newNode(w.t, w.broker, i, route))
	}
}

// connect has all nodes send a message, not faster than the broker accepts them, so
// that each has a connection.
func (w *world) connect(ctx context.Context) {
	w.broker.turnUp(true)
	w.running.Go(func() { w.broker.serve(ctx) })
	pause := time.Duration(1.2 / w.settings.Handshakes * float64(time.Second))
	for _, n := range w.nodes {
		n.make(w.t, 1)
		time.Sleep(pause)
	}
	time.Sleep(5*time.Second + turn/2) // not when the broker works
	w.broker.mu.Lock()
	defer w.broker.mu.Unlock()
	if got := len(w.broker.sessions); got != w.settings.Nodes {
		w.t.Errorf("%d of %d nodes are connected before the outage", got, w.settings.Nodes)
	}
}

// outage has the broker be away for some time, and waits until all have caught up.
func (w *world) outage(ctx context.Context) (r result) {
	w.broker.stop()
	time.Sleep(turn / 2) // until all have noticed
	producing, enough := context.WithCancel(ctx)
	defer enough()
	for _, n := range w.nodes {
		w.running.Go(func() { n.produce(producing, w.t, w.settings) })
	}
	time.Sleep(w.settings.Outage)
	w.broker.mu.Lock()
	r.DialsAtLoss = busiest(w.broker.dials)
	w.broker.mu.Unlock()
	w.broker.turnUp(true)
	w.broker.mu.Lock()
	w.broker.score.begin(w.nodes, w.broker.done)
	w.broker.mu.Unlock()
	w.running.Go(func() { w.broker.serve(ctx) })
	limit := time.NewTimer(w.settings.Limit)
	defer limit.Stop()
	select {
	case <-w.broker.done:
	case <-limit.C:
	}
	enough()
	w.broker.mu.Lock()
	defer w.broker.mu.Unlock()
	w.broker.report(&r)
	return r
}

// report fills a result.
func (b *broker) report(r *result) {
	s := b.settings
	for _, at := range b.dials {
		if at < time.Second {
			r.DialsAtEnd++
		}
	}
	c := &b.score
	r.DialsAfter, r.DialsFailed = busiest(b.dials), b.failed
	r.PeakConnections, r.PeakUnconfirmed = c.peakConnections, c.peakUnconfirmed
	r.Repeats, r.LongestConfirm, r.Fairness = c.repeats, c.longest, c.fairness
	r.First, r.Half, r.All = c.until(1, s.Limit), c.until(s.Nodes/2, s.Limit), c.until(s.Nodes, s.Limit)
	made := float64(s.Nodes*s.Backlog) / s.Outage.Seconds()
	r.Ideal = time.Duration(float64(c.owed) / (s.Confirms - made) * float64(time.Second))
}
