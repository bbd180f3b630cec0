package main

import (
	"fmt"

	"github.com/rabbitmq/amqp091-go"
)

// line is a channel to the broker with a window of messages without a confirm.
type line struct {
	url, exchange string
	window        int

	conn     *amqp091.Connection
	channel  *amqp091.Channel
	confirms chan amqp091.Confirmation
	pending  int
}

func (l *line) open() (err error) {
	if l.conn, err = amqp091.Dial(l.url); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if l.channel, err = l.conn.Channel(); err != nil {
		return err
	}
	l.confirms = l.channel.NotifyPublish(make(chan amqp091.Confirmation, l.window))
	return l.channel.Confirm(false)
}

// publish sends a message, and calls done with the number of each one that is
// confirmed meanwhile, from 1 on.
func (l *line) publish(body []byte, done func(uint64) error) error {
	for l.pending >= l.window {
		if err := l.confirm(done); err != nil {
			return err
		}
	}
	l.pending++
	return l.channel.Publish(l.exchange, "v03.run.001", true, false, amqp091.Publishing{
		DeliveryMode: amqp091.Persistent, ContentType: "application/json", MessageId: "0ad42a6f6f4e4e0c9a9f6f4e4e0c9a9f-1", Body: body,
	})
}

// confirm waits for a confirm.
func (l *line) confirm(done func(uint64) error) error {
	c, open := <-l.confirms
	if !open || !c.Ack {
		return fmt.Errorf("message %d was not confirmed", c.DeliveryTag)
	}
	l.pending--
	if done == nil {
		return nil
	}
	return done(c.DeliveryTag)
}

// settle waits for all confirms.
func (l *line) settle(done func(uint64) error) error {
	for l.pending > 0 {
		if err := l.confirm(done); err != nil {
			return err
		}
	}
	return nil
}

func (l *line) close() error { return l.conn.Close() }
