package amqp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/rabbitmq/amqp091-go"
)

// dialer makes one connection and its channel.
type dialer struct {
	opts Options
	uri  amqp091.URI

	wire *wire       // nil before there is one
	stop func() bool // undoes that the end of ctx closes wire
}

// Dial connects to a broker, declares the exchanges and returns a session that
// is ready to publish. The end of ctx ends a Dial in progress, at once, and has
// no meaning for the session after that.
func Dial(ctx context.Context, opts Options) (*Session, error) {
	opts = opts.withDefaults()
	uri, err := amqp091.ParseURI(opts.URL)
	if err != nil {
		// The library quotes the URL, or the part of it that it could not
		// read, and that can be the password.
		return nil, errURL
	}
	d := &dialer{opts: opts, uri: uri}
	s, err := d.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", d.address(), err)
	}
	return s, nil
}

var errURL = errors.New("the broker's URL cannot be read; special characters in user and password must be percent-encoded")

func (d *dialer) address() string {
	return net.JoinHostPort(d.uri.Host, strconv.Itoa(d.uri.Port))
}

func (d *dialer) dial(ctx context.Context) (*Session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.opts.DialTimeout,
		fmt.Errorf("no answer within %v", d.opts.DialTimeout))
	defer cancel()

	s, err := d.open(ctx)
	if err == nil && !d.stop() {
		err = context.Cause(ctx)
	}
	if err == nil {
		s.start()
		return s, nil
	}
	if d.wire != nil {
		d.wire.Close() // the library's goroutines end with it
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, err
}

func (d *dialer) open(ctx context.Context) (*Session, error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	ch, err := declare(conn, d.opts.Exchanges)
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("enter confirm mode: %w", err)
	}
	return newSession(d, conn, ch), nil
}

func (d *dialer) connect(ctx context.Context) (*amqp091.Connection, error) {
	properties := amqp091.Table{
		"product":         "spoolfs",
		"version":         d.opts.Version,
		"platform":        "Go",
		"connection_name": d.opts.Name,
	}
	config := amqp091.Config{
		Heartbeat:  d.opts.Heartbeat,
		Properties: properties,
		Dial: func(network, address string) (net.Conn, error) {
			return d.dialWire(ctx, network, address)
		},
	}
	if d.uri.AuthMechanism == nil {
		auth := &login{PlainAuth: d.uri.PlainAuth(), properties: properties}
		defer func() { auth.Password = "" }() // the library keeps auth
		config.SASL = []amqp091.Authentication{auth}
	}
	conn, err := amqp091.DialConfig(d.opts.URL, config)
	return conn, explain(err)
}

func (d *dialer) dialWire(ctx context.Context, network, address string) (net.Conn, error) {
	var nd net.Dialer
	conn, err := nd.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.wire = &wire{Conn: conn, timeout: d.opts.WriteTimeout}
	d.stop = context.AfterFunc(ctx, func() { conn.Close() })
	return d.wire, nil
}

// explain replaces the library's guesses at why the connection was closed
// without a word.
func explain(err error) error {
	if err == amqp091.ErrCredentials || err == amqp091.ErrVhost {
		return errors.New("the connection was closed during the handshake")
	}
	return err
}
