package amqp

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rabbitmq/amqp091-go"
)

func TestClassify(t *testing.T) {
	said := func(code int) error { return fmt.Errorf("wrapped: %w", &amqp091.Error{Code: code, Server: true}) }
	for _, c := range []struct {
		err  error
		want Class
	}{
		{errors.New("connection refused"), Retriable},
		{said(amqp091.ConnectionForced), Retriable},
		{said(amqp091.InternalError), Retriable},
		{amqp091.ErrCredentials, Retriable}, // the library's guess
		{said(amqp091.AccessRefused), Lazy},
		{said(amqp091.NotFound), Lazy},
		{said(amqp091.NotAllowed), Lazy},
		{&declareError{"x", said(amqp091.PreconditionFailed)}, Lazy},
		{said(amqp091.PreconditionFailed), Culprit},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%v: got %d, want %d", c.err, got, c.want)
		}
	}
}
