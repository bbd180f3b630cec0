package rabbit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	prefetch = 256 // messages that a consumer may have in hand
	consumer = "spoolfs"
)

// Queue is a durable queue that gets what is published to a durable topic exchange:
// everything, or what has a Key.
type Queue struct {
	URL      string // of the broker, such as Node.URL
	Name     string
	Exchange string
	Key      string // of the binding; empty is everything

	// Arguments are the queue's; nil is none.
	Arguments map[string]any
}

// Declare makes the exchange, the queue and the binding, as far as they do not
// exist.
func (q Queue) Declare(ctx context.Context) error {
	return q.do(ctx, "declare", func(ch *amqp.Channel) error {
		if err := ch.ExchangeDeclare(q.Exchange, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
			return err
		}
		if _, err := ch.QueueDeclare(q.Name, true, false, false, false, q.Arguments); err != nil {
			return err
		}
		return ch.QueueBind(q.Name, cmp.Or(q.Key, "#"), q.Exchange, false, nil)
	})
}

// Depth is the number of messages that wait in the queue.
func (q Queue) Depth(ctx context.Context) (int, error) {
	var depth int
	err := q.do(ctx, "look at", func(ch *amqp.Channel) error {
		state, err := ch.QueueDeclarePassive(q.Name, true, false, false, false, q.Arguments)
		depth = state.Messages
		return err
	})
	return depth, err
}

// Drain takes what is in the queue now.
func (q Queue) Drain(ctx context.Context) ([]Delivery, error) {
	depth, err := q.Depth(ctx)
	if err != nil || depth == 0 {
		return nil, err
	}
	return q.Consume(ctx, depth)
}

// Consume takes want messages, acknowledges them and returns them. When ctx or
// the connection ends before, it returns those that came, with the reason.
func (q Queue) Consume(ctx context.Context, want int) ([]Delivery, error) {
	if want <= 0 {
		return nil, nil
	}
	var got []Delivery
	err := q.do(ctx, "consume from", func(ch *amqp.Channel) error {
		if err := ch.Qos(min(prefetch, want), 0, false); err != nil {
			return err
		}
		deliveries, err := ch.Consume(q.Name, consumer, false, false, false, false, nil)
		if err != nil {
			return err
		}
		got, err = collect(ctx, deliveries, want)
		// Cancelled first: room in the window would be filled at once with
		// messages that nobody wants, and these would count as redelivered.
		err = errors.Join(err, ch.Cancel(consumer, false))
		if len(got) > max(0, want-prefetch) {
			err = errors.Join(err, ch.Ack(got[len(got)-1].tag, true))
		}
		return err
	})
	return got, err
}

// collect acknowledges a delivery only while the broker owes us another one
// for the room in the window. The rest is for the caller to acknowledge.
func collect(ctx context.Context, deliveries <-chan amqp.Delivery, want int) ([]Delivery, error) {
	var got []Delivery
	for len(got) < want {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return got, amqp.ErrClosed
			}
			got = append(got, newDelivery(d))
			if len(got) > want-prefetch {
				continue
			}
			if err := d.Ack(false); err != nil {
				return got, err
			}
		case <-ctx.Done():
			return got, context.Cause(ctx)
		}
	}
	return got, nil
}

// do calls f with a channel of its own.
func (q Queue) do(ctx context.Context, what string, f func(*amqp.Channel) error) error {
	err := withChannel(ctx, q.URL, f)
	if err != nil {
		return fmt.Errorf("%s queue %q: %w", what, q.Name, err)
	}
	return nil
}

func withChannel(ctx context.Context, url string, f func(*amqp.Channel) error) error {
	conn, err := dial(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := f(ch); err != nil {
		return err
	}
	return ch.Close()
}

func dial(ctx context.Context, url string) (*amqp.Connection, error) {
	return amqp.DialConfig(url, amqp.Config{
		Dial: func(network, address string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			// Until the end of the handshake.
			deadline, ok := ctx.Deadline()
			if ok {
				err = conn.SetDeadline(deadline)
			}
			return conn, err
		},
	})
}
