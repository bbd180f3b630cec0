package amqp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/publisher"
)

func said(code int, reason string) error {
	return fmt.Errorf("wrapped: %w", &amqp091.Error{Code: code, Reason: reason, Server: true})
}

// TestFault_OfEnd: what the end of a session means.
func TestFault_OfEnd(t *testing.T) {
	for _, c := range []struct {
		err     error
		class   publisher.Class
		cause   publisher.Cause
		culprit bool
	}{
		{errors.New("connection reset"), publisher.Retriable, "", false},
		{said(amqp091.ConnectionForced, ""), publisher.Retriable, "", false},
		{said(amqp091.InternalError, ""), publisher.Retriable, "", false},
		{&amqp091.Error{Code: amqp091.NotFound}, publisher.Retriable, "", false}, // the library's
		{said(amqp091.AccessRefused, ""), publisher.Lazy, publisher.ExchangeRefused, true},
		{said(amqp091.NotFound, ""), publisher.Lazy, publisher.ExchangeMissing, true},
		{said(amqp091.PreconditionFailed, ""), publisher.Invalid, publisher.BadMessage, true},
		{said(amqp091.ContentTooLarge, ""), publisher.Invalid, publisher.BadMessage, true},
		{said(amqp091.SyntaxError, ""), publisher.Invalid, publisher.BadMessage, true},
	} {
		f := faultIn(endFault(c.err, "/"))
		if f.Class != c.class || f.Cause != c.cause || f.Culprit != c.culprit {
			t.Errorf("%v: got %+v", c.err, f)
		}
	}
}

// TestFault_About: the exchange is in the broker's words only; those of
// RabbitMQ from 3.10 to 4.1.
func TestFault_About(t *testing.T) {
	for reason, want := range map[string]bool{
		"NOT_FOUND - no exchange 'x' in vhost '/'":                                                 true,
		"ACCESS_REFUSED - access to exchange 'x' in vhost '/' refused for user 'u'":                true,
		"ACCESS_REFUSED - write access to exchange 'x' in vhost '/' refused for user 'u'":          true,
		"ACCESS_REFUSED - cannot publish to internal exchange 'x' in vhost '/'":                    true,
		"ACCESS_REFUSED - access to topic 'a' in exchange 'x' in vhost '/' refused for user 'u'":   false,
		"ACCESS_REFUSED - write access to topic 'a' in exchange 'x' in vhost '/' refused for user": false,
		"NOT_FOUND - no exchange 'y' in vhost '/'":                                                 false,
		"NOT_FOUND - no exchange 'x' in vhost 'other'":                                             false,
		// A name that a record has made up.
		"NOT_FOUND - no exchange 'a' exchange 'x' in vhost '/' in vhost '/'": false,
	} {
		f := faultIn(endFault(said(amqp091.NotFound, reason), "/"))
		if got := f.About != nil && f.About("x"); got != want {
			t.Errorf("%s: got %t, want %t", reason, got, want)
		}
	}
}

// TestBrokers_Together: several refusals are lazy only if all are, and what
// needs a hand is the cause.
func TestBrokers_Together(t *testing.T) {
	away := wireFault(errors.New("connection refused"))
	login := loginFault(said(amqp091.AccessRefused, ""))
	for _, c := range []struct {
		failures []error
		class    publisher.Class
		cause    publisher.Cause
	}{
		{[]error{away, away}, publisher.Retriable, publisher.Unreachable},
		{[]error{away, login}, publisher.Retriable, publisher.LoginRefused},
		{[]error{login, away}, publisher.Retriable, publisher.LoginRefused},
		{[]error{login, login}, publisher.Lazy, publisher.LoginRefused},
		{[]error{login}, publisher.Lazy, publisher.LoginRefused},
	} {
		if f := faultIn(together(c.failures)); f.Class != c.class || f.Cause != c.cause {
			t.Errorf("%v: got %+v", c.failures, f)
		}
	}
}

// TestFault_AboutLongNames: the broker cuts its words, and a name that does not
// fit is still known, and not taken for one that it holds.
func TestFault_AboutLongNames(t *testing.T) {
	const own = "x"
	for _, name := range []string{
		strings.Repeat("n", 255),
		"xs_' exchange '" + own + "' in vhost '/' " + strings.Repeat("n", 200),
	} {
		reason := "NOT_FOUND - no exchange '" + name + "' in vhost '/'"
		f := faultIn(endFault(said(amqp091.NotFound, reason[:252]+"..."), "/"))
		if f.About == nil || !f.About(name) {
			t.Errorf("%q is not known", name)
		}
		if f.About != nil && (f.About(own) || f.About(name[:200])) {
			t.Errorf("%q is taken for another one", name)
		}
	}
}
