package amqp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/publisher"
)

// code is what the broker itself gave as its reason; 0 if it said nothing.
func code(err error) int {
	var e *amqp091.Error
	if errors.As(err, &e) && e.Server {
		return e.Code
	}
	return 0
}

// wireFault is the fault of a connection that could not be made.
func wireFault(err error) error {
	return &publisher.Fault{Cause: publisher.Unreachable, Err: err}
}

// tlsFault is the fault of a handshake of TLS.
func tlsFault(err error) error {
	var verification *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &verification), errors.As(err, &header), saidByPeer(err):
		return &publisher.Fault{Cause: publisher.Certificate, Err: err}
	}
	return &publisher.Fault{Cause: publisher.Unreachable, Err: err}
}

// saidByPeer reports whether an error is a TLS alert: the broker does not like
// our certificate or our protocol.
func saidByPeer(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// loginFault is the fault of a handshake of AMQP.
func loginFault(err error) error {
	f := &publisher.Fault{Class: publisher.Lazy, Err: err}
	switch c := code(err); {
	case c == amqp091.AccessRefused:
		f.Cause = publisher.LoginRefused
	case c == amqp091.NotAllowed, c == amqp091.NotFound, c == amqp091.InvalidPath:
		f.Cause = publisher.VhostRefused
	case errors.Is(err, amqp091.ErrSASL):
		f.Cause = publisher.LoginRefused
		f.Err = errors.New("the broker offers none of the login methods that we know")
	case saidByPeer(err): // with TLS 1.3 it comes after the handshake
		f.Class, f.Cause = publisher.Retriable, publisher.Certificate
	default:
		f.Class, f.Cause = publisher.Retriable, publisher.Lost
		f.Err = explain(err)
	}
	return f
}

// explain replaces the library's guesses at why the connection was closed
// without a word.
func explain(err error) error {
	if err == amqp091.ErrCredentials || err == amqp091.ErrVhost {
		return errors.New("the connection was closed during the handshake")
	}
	return err
}

// declareFault is the fault of an exchange that could not be had.
func declareFault(exchange string, err error) error {
	f := &publisher.Fault{Class: publisher.Lazy, Err: fmt.Errorf("declare exchange %q: %w", exchange, err)}
	switch code(err) {
	case amqp091.AccessRefused:
		f.Cause = publisher.ExchangeRefused
	case amqp091.NotFound:
		f.Cause = publisher.ExchangeMissing
	case amqp091.PreconditionFailed, amqp091.NotAllowed:
		f.Cause = publisher.ExchangeDiffers
	default:
		f.Class, f.Cause = publisher.Retriable, publisher.Lost
	}
	return f
}

// endFault is the fault of a session that ended, or err if nothing more is known
// of it.
func endFault(err error, vhost string) error {
	f := &publisher.Fault{Culprit: true, Err: err}
	switch code(err) {
	case amqp091.NotFound:
		f.Class, f.Cause = publisher.Lazy, publisher.ExchangeMissing
	case amqp091.AccessRefused:
		f.Class, f.Cause = publisher.Lazy, publisher.ExchangeRefused
	case amqp091.PreconditionFailed, amqp091.ContentTooLarge,
		amqp091.FrameError, amqp091.SyntaxError, amqp091.NotImplemented:
		f.Class, f.Cause = publisher.Invalid, publisher.BadMessage
	default:
		return err
	}
	f.About = about(err, vhost)
	return f
}

// about looks for the exchange in the broker's words, which is the only place
// where it is: behind what the broker says of itself, as a name may hold the
// like. When a routing key is refused the exchange is named, too, but is not to
// blame.
func about(err error, vhost string) func(string) bool {
	var e *amqp091.Error
	if !errors.As(err, &e) {
		return nil
	}
	before, said, found := strings.Cut(e.Reason, "exchange '")
	if !found || strings.Contains(before, "access to topic '") {
		return nil
	}
	cut := false
	if len(e.Reason) == maxShort {
		said, cut = strings.CutSuffix(said, "...") // there was no room for all of it
	}
	return func(exchange string) bool {
		words := fmt.Sprintf("%s' in vhost '%s'", exchange, vhost)
		return strings.HasPrefix(said, words) || cut && strings.HasPrefix(words, said)
	}
}
