package amqp

import (
	"github.com/rabbitmq/amqp091-go"
)

// declare returns a channel of conn on which the exchanges are known to exist. If
// it is passive it makes none.
func declare(conn *amqp091.Connection, exchanges []string, passive bool) (*amqp091.Channel, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, loginFault(err)
	}
	for _, exchange := range exchanges {
		if exchange == amqp091.DefaultExchange {
			continue // it cannot be declared
		}
		how := declareTopic
		if passive {
			how = declarePassive
		}
		err := how(ch, exchange)
		if !passive && code(err) == amqp091.AccessRefused {
			// A refusal closes the channel.
			if ch, err = conn.Channel(); err == nil {
				err = declarePassive(ch, exchange)
			}
		}
		if err != nil {
			return nil, declareFault(exchange, err)
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
