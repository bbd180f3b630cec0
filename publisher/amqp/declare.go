package amqp

import (
	"errors"
	"fmt"

	"github.com/rabbitmq/amqp091-go"
)

// A declareError says that an exchange could not be had.
type declareError struct {
	exchange string
	err      error
}

func (e *declareError) Error() string {
	return fmt.Sprintf("declare exchange %q: %v", e.exchange, e.err)
}
func (e *declareError) Unwrap() error { return e.err }

// declare returns a channel of conn on which the exchanges are known to exist.
func declare(conn *amqp091.Connection, exchanges []string) (*amqp091.Channel, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	for _, exchange := range exchanges {
		if exchange == amqp091.DefaultExchange {
			continue // it cannot be declared
		}
		err := declareTopic(ch, exchange)
		if refused(err) {
			// A refusal closes the channel.
			if ch, err = conn.Channel(); err == nil {
				err = declarePassive(ch, exchange)
			}
		}
		if err != nil {
			return nil, &declareError{exchange, err}
		}
	}
	return ch, nil
}

func declareTopic(ch *amqp091.Channel, exchange string) error {
	return ch.ExchangeDeclare(exchange, amqp091.ExchangeTopic, true, false, false, false, nil)
}

// declarePassive asks whether the exchange exists; its type is not compared.
func declarePassive(ch *amqp091.Channel, exchange string) error {
	return ch.ExchangeDeclarePassive(exchange, amqp091.ExchangeTopic, true, false, false, false, nil)
}

func refused(err error) bool {
	var e *amqp091.Error
	return errors.As(err, &e) && e.Server && e.Code == amqp091.AccessRefused
}
