package rabbit

import (
	"context"
	"errors"
	"math"
	"testing"
)

func TestQueue(t *testing.T) {
	n := startNode(t)
	t.Run("Consume", func(t *testing.T) { testQueueConsume(t, n) })
	t.Run("ConsumeUntilContextEnds", func(t *testing.T) { testQueueContext(t, n) })
}

func testQueueConsume(t *testing.T, n *Node) {
	q := declareQueue(t, n)
	publish(t, q, 1000)

	d := consume(t, q, 300)[1]
	if d.Exchange != q.Exchange || d.Key != "a.b" || d.MessageID != "id-1" || d.ContentType != "text/plain" ||
		d.DeliveryMode != 2 || d.Headers["n"] != int32(1) || d.Redelivered {
		t.Errorf("got %+v", d)
	}

	rest, err := q.Drain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(rest) != 700 || string(rest[0].Body) != "300" {
		t.Errorf("got %d messages from %q", len(rest), rest[0].Body)
	}
	for _, d := range rest {
		if d.Redelivered {
			t.Fatalf("message %q was delivered before", d.Body)
		}
	}
	if depth, err := q.Depth(t.Context()); err != nil || depth != 0 {
		t.Errorf("got depth %d, error %v", depth, err)
	}
}

// What came before the end of the context is acknowledged and returned.
func testQueueContext(t *testing.T, n *Node) {
	q := declareQueue(t, n)
	publish(t, q, 10)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type result struct {
		got []Delivery
		err error
	}
	done := make(chan result)
	go func() {
		got, err := q.Consume(ctx, math.MaxInt)
		done <- result{got, err}
	}()
	for unready := true; unready; {
		depth, err := q.Depth(ctx)
		unready = err != nil || depth > 0
	}
	cancel()
	r := <-done
	if len(r.got) > 10 || !errors.Is(r.err, context.Canceled) {
		t.Errorf("got %d messages, error %v", len(r.got), r.err)
	}
	rest, err := q.Drain(t.Context())
	if err != nil || len(rest)+len(r.got) != 10 {
		t.Errorf("got %d messages, then %d, error %v", len(r.got), len(rest), err)
	}
}
