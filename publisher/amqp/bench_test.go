package amqp

import (
	"fmt"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/integration/rabbit"
	"spoolfs/publisher"
)

// BenchmarkPublish compares a session with what the library does alone, both
// with the same window of messages without a verdict. The body is as long as a
// usual one, and the messages are persistent in a durable queue.
func BenchmarkPublish(b *testing.B) {
	body := make([]byte, 377)
	for _, window := range []int{64, 256, 1024} {
		b.Run(fmt.Sprintf("Session/window=%d", window), func(b *testing.B) {
			benchSession(b, window, body)
		})
		b.Run(fmt.Sprintf("Bare/window=%d", window), func(b *testing.B) {
			benchBare(b, window, body)
		})
	}
}

func benchSession(b *testing.B, window int, body []byte) {
	q := benchQueue(b)
	s := dial(b, Options{Exchanges: []string{q.Exchange}})
	p := publication(q.Exchange, 0)
	p.Message.Body = body
	b.ResetTimer()
	for sent := range b.N {
		if sent >= window {
			wantConfirmed(b, s)
		}
		p.Tag = uint64(sent)
		publish(b, s, p)
	}
	for range min(window, b.N) {
		wantConfirmed(b, s)
	}
	b.StopTimer()
	report(b)
}

func wantConfirmed(tb testing.TB, s *Session) {
	tb.Helper()
	if v := <-s.Verdicts(); v.Outcome != publisher.Confirmed {
		tb.Fatalf("got %+v: %v", v, s.Err())
	}
}

func benchBare(b *testing.B, window int, body []byte) {
	q := benchQueue(b)
	withChannel(b, func(ch *amqp091.Channel) {
		if err := ch.Confirm(false); err != nil {
			b.Fatal(err)
		}
		confirms := ch.NotifyPublish(make(chan amqp091.Confirmation, window))
		b.ResetTimer()
		for sent := range b.N {
			if sent >= window {
				<-confirms
			}
			if err := ch.Publish(q.Exchange, "v03.post.a", true, false, amqp091.Publishing{
				DeliveryMode: amqp091.Persistent,
				ContentType:  "application/json",
				MessageId:    "id-0",
				Body:         body,
			}); err != nil {
				b.Fatal(err)
			}
		}
		for range min(window, b.N) {
			<-confirms
		}
		b.StopTimer()
	})
	report(b)
}

// benchQueue is a queue that goes with its messages at the end.
func benchQueue(b *testing.B) rabbit.Queue {
	q := declareQueue(b, nil)
	b.Cleanup(func() {
		withChannel(b, func(ch *amqp091.Channel) {
			if _, err := ch.QueueDelete(q.Name, false, false, false); err != nil {
				b.Error(err)
			}
		})
	})
	return q
}

func report(b *testing.B) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
