package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
)

// TestRoutes_Chain: messages go through three routes, each of which follows the one
// before, while the worker, or the keeper with it, is killed again and again, at
// random moments. At each stage each message arrives, and one that arrives twice has
// the same id, which tells whose it is (G3). With SPOOLFS_CHAOS it is a hundred kills.
func TestRoutes_Chain(t *testing.T) {
	node := brokerNode(t)
	names := []string{"first", "second", "third"}
	config := "broker: " + node.URL() + "\nexchange: none\nformat: amqp\nroutes:\n"
	queues := map[string]rabbit.Queue{}
	for i, name := range names {
		q := newQueue(t, node)
		queues[name] = q
		then := ""
		if i+1 < len(names) {
			then = ", then: " + names[i+1]
		}
		config += fmt.Sprintf("  %s: {exchange: %s, window: 16%s}\n", name, q.Exchange, then)
	}
	s := newConfigured(t, config)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const lines = 200
	written := 0
	rounds := times(6, 100)
	for round := range rounds {
		var text strings.Builder
		for range lines {
			fmt.Fprintf(&text, "{\"body\": \"%d\"}\n", written)
			written++
		}
		s.place(fmt.Sprintf("first/f%d", round), text.String())
		worker := s.status().Keeper.WorkerPID
		moment := time.NewTimer(time.Duration(random.IntN(150)) * time.Millisecond)
		<-moment.C
		if round%3 == 2 {
			s.kill() // and the worker goes with it
			s.start()
			continue
		}
		if err := syscall.Kill(worker, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
		s.until("served by another worker", func() bool { return s.status().Keeper.WorkerPID != worker })
	}
	s.untilSent()
	suffix := ""
	parents := map[string]string{} // body to id
	for i, name := range names {
		if i > 0 {
			suffix += "/" + name
		}
		for _, d := range drainAll(t, queues[name], written, nil) {
			body := string(d.Body)
			if i == 0 {
				if other, twice := parents[body]; twice {
					t.Errorf("message %s has the ids %s and %s", body, other, d.MessageID)
				}
				parents[body] = d.MessageID
			} else if want := parents[body] + suffix; d.MessageID != want {
				t.Errorf("%s: message %s has the id %s, want %s", name, body, d.MessageID, want)
			}
		}
		if len(parents) != written {
			t.Errorf("%s: %d messages of %d have arrived", name, len(parents), written)
		}
	}
	for name, r := range s.routes() {
		if r.waiting()+r.Queue.Dead != 0 {
			t.Errorf("left in %s: %+v", name, r.Queue)
		}
	}
}

// drainAll takes what is in a queue until so many messages have come, without those
// that are known and without repeats, which must have the same id and body.
func drainAll(t testing.TB, q rabbit.Queue, want int, known map[string]bool) []rabbit.Delivery {
	t.Helper()
	var once []rabbit.Delivery
	bodies := map[string]string{}
	for deadline := time.Now().Add(time.Minute); ; {
		more, err := q.Drain(limit(t, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range more {
			body, repeated := bodies[d.MessageID]
			switch {
			case known[d.MessageID]:
			case !repeated:
				bodies[d.MessageID] = string(d.Body)
				once = append(once, d)
			case body != string(d.Body):
				t.Errorf("message id %s has two bodies", d.MessageID)
			}
		}
		if len(once) >= want && len(more) == 0 || time.Now().After(deadline) {
			return once
		}
	}
}
