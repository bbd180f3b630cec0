package amqp

import (
	"errors"

	"github.com/rabbitmq/amqp091-go"
)

// Class tells what can be done about an error.
type Class uint8

const (
	// Retriable: dial again.
	Retriable Class = iota

	// Lazy: dialling again is of no use before somebody has changed the
	// broker's configuration or ours. User, virtual host or exchange are
	// refused, missing, or not what they should be.
	Lazy

	// Culprit: the broker ended the session because of one of the messages
	// that are without a verdict, and did not say which.
	Culprit
)

// Classify tells what can be done about an error of Dial or of Session.Err.
func Classify(err error) Class {
	var e *amqp091.Error
	if !errors.As(err, &e) || !e.Server {
		return Retriable
	}
	switch e.Code {
	case amqp091.AccessRefused, amqp091.NotFound, amqp091.NotAllowed:
		return Lazy
	case amqp091.PreconditionFailed, amqp091.ContentTooLarge:
		var d *declareError
		if errors.As(err, &d) {
			return Lazy
		}
		return Culprit
	}
	return Retriable
}
