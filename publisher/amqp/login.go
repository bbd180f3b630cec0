package amqp

import (
	"github.com/rabbitmq/amqp091-go"
)

var _ amqp091.Authentication = (*login)(nil)

// login is a way to log in, and to learn that we were refused.
//
// A client that does not declare the capability gets a closed connection, after
// three seconds, instead of an answer; amqp091-go then guesses "username or
// password not allowed", also when the broker has crashed. It does not declare
// the capability and overwrites ours, but it asks for the response after that
// and before it sends.
type login struct {
	amqp091.Authentication
	properties amqp091.Table // of the client, as passed to the library
}

func (l *login) Response() string {
	if capabilities, ok := l.properties["capabilities"].(amqp091.Table); ok {
		capabilities["authentication_failure_close"] = true
	}
	return l.Authentication.Response()
}
