package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
)

// newestBacklog is how many messages wait, and newestFresh how many are written then, one
// after the other.
const (
	newestBacklog = 1_000_000
	newestFresh   = 300
)

// BenchmarkNewest_Mount measures how long a fresh message takes from its close until a
// consumer has it, in a route that is newest-first and has a million messages that drain
// meanwhile, beside the same in a route that has none, with a real broker. They take turns.
// The wanted time is 50 ms.
func BenchmarkNewest_Mount(b *testing.B) {
	node := brokerNode(b)
	exchange := fmt.Sprintf("xs_newest_%d", time.Now().UnixNano())
	bind := func(key string, arguments map[string]any) rabbit.Queue {
		q := rabbit.Queue{URL: node.URL(), Name: exchange + "." + key, Exchange: exchange, Key: key, Arguments: arguments}
		if err := q.Declare(limit(b, time.Minute)); err != nil {
			b.Fatal(err)
		}
		return q
	}
	bind("old", map[string]any{"x-max-length": 1000})
	queues := []rabbit.Queue{bind("long", nil), bind("empty", nil)}
	s := newSpool(b, plainBinary, "")
	c := &configured{spool: s, file: filepath.Join(filepath.Dir(s.dir), "spoolfs.yaml")}
	c.put("broker: " + node.URL() + "\nexchange: " + exchange + "\nformat: amqp\norder: newest-first\nroutes:\n  long:\n  empty:\n")
	s.args = []string{"--config", c.file, "--store", s.store}
	s.start()
	for b.Loop() {
		s.fillNewest()
		before := s.routes()["long"].waiting()
		took := s.freshNewest(queues)
		after := s.routes()["long"].waiting()
		b.Logf("%d messages waited, and %d afterwards", before, after)
		if after == 0 {
			b.Fatal("the backlog was gone before all was measured")
		}
		for i, name := range []string{"long", "empty"} {
			slices.Sort(took[i])
			b.ReportMetric(milliseconds(took[i][len(took[i])/2]), name+"-p50-ms")
			b.ReportMetric(milliseconds(took[i][len(took[i])*99/100]), name+"-p99-ms")
		}
	}
	b.ReportMetric(0, "ns/op")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// fillNewest has as many messages wait as are wanted, and then lets them go.
func (s *spool) fillNewest() {
	s.control("pause route=long")
	const lines = 20_000
	text := strings.Repeat(`{"routing_key": "old", "body": "what waits"}`+"\n", lines)
	for i := 0; s.routes()["long"].waiting()+lines <= newestBacklog; i++ {
		s.place(fmt.Sprintf("long/old.%d", i), text)
	}
	s.until("taken what waits", func() bool { return s.routes()["long"].Queue.Staged == 0 })
	s.control("resume route=long")
	confirmed := s.routes()["long"].Publisher.ConfirmedTotal
	s.until("publishing the backlog", func() bool { return s.routes()["long"].Publisher.ConfirmedTotal > confirmed })
}

// freshNewest writes fresh messages to both routes, in turn, and tells how long each took.
func (s *spool) freshNewest(queues []rabbit.Queue) [2][]time.Duration {
	var closed [2][newestFresh]time.Time
	var arrived [2]chan []rabbit.Delivery
	for i, q := range queues {
		arrived[i] = make(chan []rabbit.Delivery, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			got, err := q.Consume(ctx, newestFresh)
			if err != nil {
				s.t.Error(err)
			}
			arrived[i] <- got
		}()
	}
	for n := range newestFresh {
		for i, name := range []string{"long", "empty"} {
			s.place(fmt.Sprintf("%s/fresh.%d", name, n), fmt.Sprintf(`{"routing_key": %q, "body": "%d"}`+"\n", name, n))
			closed[i][n] = time.Now()
			time.Sleep(10 * time.Millisecond) // the rate of the writer, and no wait for anything
		}
	}
	var took [2][]time.Duration
	for i := range queues {
		for _, d := range <-arrived[i] {
			n, err := strconv.Atoi(string(d.Body))
			if err != nil {
				s.t.Fatal(err)
			}
			took[i] = append(took[i], d.At.Sub(closed[i][n]))
		}
		if len(took[i]) != newestFresh {
			s.t.Fatalf("%d of %d fresh messages have come", len(took[i]), newestFresh)
		}
	}
	return took
}
