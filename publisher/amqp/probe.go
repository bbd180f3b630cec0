package amqp

import (
	"context"
	"errors"

	"spoolfs/publisher"
)

// Step is a part of a Dial. They come in the order in which they stand here.
type Step string

const (
	StepCredentials Step = "credentials" // find user and password
	StepResolve     Step = "resolve"     // the name of the host
	StepConnect     Step = "connect"     // TCP
	StepTLS         Step = "tls"
	StepLogin       Step = "login"
	StepVhost       Step = "vhost"
	StepExchange    Step = "exchange"
)

// DialError says at which step a Dial has failed, and why.
type DialError struct {
	Address string // host:port
	Step    Step
	Err     error
}

// Error implements error.
func (e *DialError) Error() string { return "dial " + e.Address + ": " + e.Err.Error() }

// Unwrap is for errors.As.
func (e *DialError) Unwrap() error { return e.Err }

// stepOf is the step that an error belongs to, which may come to light in a
// later one.
func (d *dialer) stepOf(err error) Step {
	var f *publisher.Fault
	errors.As(err, &f)
	switch {
	case d.step == StepConnect && !d.resolved.Load():
		return StepResolve
	case f != nil && f.Cause == publisher.VhostRefused:
		return StepVhost
	case f != nil && f.Cause == publisher.LoginRefused:
		return StepLogin
	case f != nil && f.Cause == publisher.Certificate:
		return StepTLS
	}
	return d.step
}

// Probe does all that Dial does, but makes no exchange, and hangs up. It returns
// when the certificates expire. Its error holds a *DialError, if the URL can be
// read.
func Probe(ctx context.Context, opts Options) (Expiry, error) {
	opts.Passive = true
	s, expiry, err := dialBroker(ctx, opts)
	if err != nil {
		return expiry, err
	}
	return expiry, s.Close()
}
