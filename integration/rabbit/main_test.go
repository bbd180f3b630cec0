package rabbit

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"
)

// orphanEnv makes the test binary a program that starts a node and waits to be
// killed.
const orphanEnv = "SPOOLFS_TEST_RABBIT_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		waitToBeKilled()
	}
	goleak.VerifyTestMain(m)
}

func startNode(tb testing.TB) *Node {
	tb.Helper()
	n, err := Start(tb.Context(), Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closeNode(tb, n) })
	return n
}

func closeNode(tb testing.TB, n *Node) {
	tb.Helper()
	if err := n.Close(); err != nil {
		tb.Errorf("Close: %v", err)
	}
}

func declareQueue(tb testing.TB, n *Node) Queue {
	tb.Helper()
	q := Queue{URL: n.URL(), Name: "q_" + tb.Name(), Exchange: "x_" + tb.Name()}
	if err := q.Declare(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return q
}

// publish publishes count persistent messages and waits for their confirms.
// Their bodies are 0, 1, 2 and so on.
func publish(tb testing.TB, q Queue, count int) {
	tb.Helper()
	err := withChannel(tb.Context(), q.URL, func(ch *amqp.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		confirms := ch.NotifyPublish(make(chan amqp.Confirmation, count))
		for i := range count {
			if err := ch.Publish(q.Exchange, "a.b", false, false, amqp.Publishing{
				DeliveryMode: amqp.Persistent,
				MessageId:    fmt.Sprint("id-", i),
				ContentType:  "text/plain",
				Headers:      amqp.Table{"n": int32(i)},
				Body:         fmt.Append(nil, i),
			}); err != nil {
				return err
			}
		}
		for range count {
			if c := <-confirms; !c.Ack {
				return fmt.Errorf("message %d: not confirmed", c.DeliveryTag)
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func consume(tb testing.TB, q Queue, count int) []Delivery {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	got, err := q.Consume(ctx, count)
	if err != nil {
		tb.Fatalf("after %d of %d messages: %v", len(got), count, err)
	}
	for i, d := range got {
		if string(d.Body) != fmt.Sprint(i) {
			tb.Fatalf("message %d: got body %q", i, d.Body)
		}
	}
	return got
}
