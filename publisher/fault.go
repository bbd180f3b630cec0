package publisher

import (
	"errors"

	"spoolfs/queue"
)

// Class is what can be done about a failure; policies says what is.
type Class uint8

const (
	// Retriable: try again. The connection is lost, or the peer does not
	// answer.
	Retriable Class = iota

	// Refused by a nack: try this message again later, and go slower.
	Refused

	// Lazy: trying again is of no use before somebody has changed the broker's
	// configuration or ours. User, virtual host or exchange are refused,
	// missing, or not what they should be.
	Lazy

	// LazyMessage is Lazy of an exchange or a routing key that the message itself
	// names. It stops this message alone, since no user may stop a route.
	LazyMessage

	// Invalid: this message can never be sent as it is.
	Invalid

	// Unroutable: confirmed, but no queue was bound for it.
	Unroutable

	// Expired: older than the operator wants it sent.
	Expired
)

// String names the class for people and for metrics. Names are never changed.
func (c Class) String() string {
	names := [...]string{"retriable", "refused", "lazy", "lazy-message", "invalid", "unroutable", "expired"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}

// Cause tells failures apart for the status. Causes are added, never renamed.
type Cause string

const (
	Unreachable     Cause = "unreachable"      // nobody answers under this address
	Certificate     Cause = "certificate"      // the broker's, or ours, is not accepted
	Credentials     Cause = "credentials"      // user or password cannot be had
	LoginRefused    Cause = "login-refused"    // user or password is wrong
	VhostRefused    Cause = "vhost-refused"    // the virtual host is missing or not for this user
	ExchangeMissing Cause = "exchange-missing" // it does not exist
	ExchangeRefused Cause = "exchange-refused" // this user may not publish to it
	ExchangeDiffers Cause = "exchange-differs" // it exists with another type or other properties
	NotAllowed      Cause = "not-allowed"      // a record names an exchange that we do not allow
	Lost            Cause = "connection-lost"  // the connection ended
	Silent          Cause = "silent"           // it is there, and says nothing: no confirm in time, or no handshake
	AlarmedBroker   Cause = "blocked"          // the broker blocks publishers for too long
	Rejecting       Cause = "rejecting"        // the broker refuses messages for now
	Store           Cause = "store"            // our own disk, not the broker
	BadMessage      Cause = "message"          // the broker cannot take a message
)

// A Fault is an error of Dial or of Session.Err with what is known about it.
// An error that holds none is Retriable.
type Fault struct {
	Class Class
	Cause Cause

	// Culprit says that one of the messages without a verdict did it, and that
	// the broker did not say which.
	Culprit bool

	// About reports whether the broker's words are about an exchange. It is nil
	// if they are about none, also when a routing key was refused: then only
	// the culprit itself is to blame.
	About func(exchange string) bool

	Err error
}

// Error implements error.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap is for errors.As.
func (f *Fault) Unwrap() error { return f.Err }

// faultOf is the fault in err, or one without a special cause.
func faultOf(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	if errors.Is(err, queue.ErrFault) {
		return &Fault{Cause: Store, Err: err}
	}
	return &Fault{Cause: Lost, Err: err}
}

// Advice says what to do about a failure.
func (c Cause) Advice() string { return advice[c] }

var advice = map[Cause]string{
	Unreachable:     "check host, port and network, and that the broker runs; what is queued goes out when it is back",
	Certificate:     "check the broker's certificate and name; give its CA with --tls-ca, our certificate with --tls-cert and --tls-key",
	Credentials:     "see that the file of the password or credentials is there, readable, and has a line for this broker; it is read anew at each attempt",
	LoginRefused:    "check user and password; the password is read anew at each attempt if it comes from a file",
	VhostRefused:    "check the virtual host, which is the path of the URL: it must exist, and the user needs a permission in it",
	ExchangeMissing: "make the exchange (topic, durable), or give the user the permission to configure it",
	ExchangeRefused: "give the user the permission to write to the exchange",
	ExchangeDiffers: "the exchange exists with another type or other properties: name another one, or make it topic and durable",
	NotAllowed:      "allow the exchange with --allow-exchange, or keep such records out; they are tried again later",
	Lost:            "see the broker's log if it goes on; what is queued goes out when it is back",
	Silent:          "see whether the broker, or the node of its queue, hangs or is overloaded; what has no confirm is sent again on a new connection",
	AlarmedBroker:   "the broker has a memory or disk alarm: free some there",
	Rejecting:       "a queue at the broker is full or has failed: see its length and its limit",
	Store:           "see whether the store's disk is full or failing: this program's log says more",
	BadMessage:      "see the dead letters",
}
