package amqp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/publisher"
)

// dialer makes one connection and its channel.
type dialer struct {
	opts   Options
	uri    amqp091.URI
	expiry Expiry
	step   Step // that it has come to

	// resolved is set when there is an address to connect to.
	resolved atomic.Bool

	wire    *wire       // nil before there is one
	secured *secured    // the same, with amqps
	cork    *cork       // the same, above that
	stop    func() bool // undoes that the end of ctx closes wire
}

// Dial connects to a broker, declares the exchanges and returns a session that
// is ready to publish. The end of ctx ends a Dial in progress, at once, and has
// no meaning for the session after that.
//
// Its errors hold a *publisher.Fault.
func Dial(ctx context.Context, opts Options) (*Session, error) {
	s, _, err := dialBroker(ctx, opts)
	return s, err
}

func dialBroker(ctx context.Context, opts Options) (*Session, Expiry, error) {
	opts = opts.withDefaults()
	uri, err := amqp091.ParseURI(opts.URL)
	if err != nil {
		// The library quotes the URL, or the part of it that it could not
		// read, and that can be the password.
		return nil, Expiry{}, errURL
	}
	d := &dialer{opts: opts.withURL(uri), uri: uri}
	s, err := d.dial(ctx)
	if err != nil {
		return nil, d.expiry, &DialError{Address: d.address(), Step: d.stepOf(err), Err: err}
	}
	return s, d.expiry, nil
}

var errURL error = &publisher.Fault{
	Class: publisher.Lazy, Cause: publisher.Credentials,
	Err: errors.New("the broker's URL cannot be read; special characters in user and password must be percent-encoded"),
}

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
	if ctx.Err() != nil && d.wire != nil {
		// Somebody took the connection: no network is down, no broker restarts.
		return nil, &publisher.Fault{Cause: publisher.Silent, Err: context.Cause(ctx)}
	}
	if ctx.Err() != nil {
		return nil, wireFault(context.Cause(ctx))
	}
	return nil, err
}

func (d *dialer) open(ctx context.Context) (*Session, error) {
	d.step = StepCredentials
	auth, err := d.authentication()
	if err != nil {
		return nil, err
	}
	conn, err := d.connect(ctx, auth)
	if err != nil {
		return nil, err
	}
	d.step = StepExchange
	ch, err := declare(conn, d.opts.Exchanges, d.opts.Passive)
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("enter confirm mode: %w", err)
	}
	return newSession(d, conn, ch), nil
}

// connect does the handshakes. The library gets neither URL nor password beyond
// what it needs for that.
func (d *dialer) connect(ctx context.Context, auth amqp091.Authentication) (*amqp091.Connection, error) {
	conn, err := d.dialWire(ctx)
	if err != nil {
		return nil, err
	}
	properties := amqp091.Table{
		"product":         "spoolfs",
		"version":         d.opts.Version,
		"platform":        "Go",
		"connection_name": d.opts.Name,
	}
	d.step = StepLogin
	d.cork = &cork{Conn: conn}
	c, err := amqp091.Open(d.cork, amqp091.Config{
		SASL:       []amqp091.Authentication{&login{auth, properties}},
		Vhost:      d.uri.Vhost,
		ChannelMax: d.uri.ChannelMax,
		FrameSize:  maxFrame,
		Heartbeat:  d.opts.Heartbeat,
		Properties: properties,
		Locale:     "en_US",
	})
	if plain, ok := auth.(*amqp091.PlainAuth); ok {
		plain.Password = "" // the library keeps it
	}
	if err = d.secured.alerted(err); err != nil {
		return nil, loginFault(err)
	}
	return c, nil
}

// maxFrame is the frame size that we ask for, RabbitMQ's own default.
const maxFrame = 128 << 10

// authentication is how we log in. It is asked for before anything is dialled:
// what it lacks the network cannot give.
func (d *dialer) authentication() (amqp091.Authentication, error) {
	c := Credentials{User: d.uri.Username, Password: d.uri.Password, External: d.opts.External}
	if d.opts.Credentials != nil && !d.opts.External {
		var err error
		if c, err = d.opts.Credentials(); err != nil {
			return nil, &publisher.Fault{Class: publisher.Lazy, Cause: publisher.Credentials, Err: err}
		}
	}
	if c.External {
		return &amqp091.ExternalAuth{}, nil
	}
	return &amqp091.PlainAuth{Username: c.User, Password: c.Password}, nil
}

// heartbeatsMissed is how many the library waits for.
const heartbeatsMissed = 3

func (d *dialer) dialWire(ctx context.Context) (net.Conn, error) {
	d.step = StepConnect
	nd := net.Dialer{Control: func(string, string, syscall.RawConn) error {
		d.resolved.Store(true)
		return nil
	}}
	conn, err := nd.DialContext(ctx, "tcp", d.address())
	if err != nil {
		return nil, wireFault(err)
	}
	d.wire = &wire{Conn: conn, timeout: d.opts.WriteTimeout, silence: heartbeatsMissed * d.opts.Heartbeat}
	d.stop = context.AfterFunc(ctx, func() { conn.Close() })
	if d.uri.Scheme == "amqps" {
		d.step = StepTLS
		return d.secure(ctx, d.wire)
	}
	return d.wire, nil
}
