package queue

import "time"

// ID names a message for all of its life: retry, requeue, restart and redrive
// keep it, and it travels to the broker as the AMQP message_id, so that whoever
// receives a message twice can tell.
//
// A message from the mount has the 128 random bits of its file in hexadecimal,
// a hyphen, and the number of its line: "9f86d081884c7d659a2feaa0c55ad015-1".
type ID string

// Message is one unit to publish, or, with a Reason, a dead letter or a partial
// file.
//
// It holds what depends on the content of the file alone. What depends on the
// configuration (exchange, topic prefix, broker) is decided when it is
// published, so that a corrected configuration applies to the backlog.
type Message struct {
	ID ID

	// Ingested is when the message was first stored.
	Ingested time.Time

	// File is the name under which the writer knew the file, UID the user who
	// wrote it, and Line the number of the message's line in it, from 1. They
	// tell a person where a message came from; they are not unique.
	File string
	UID  uint32
	Line uint32

	// Subject says what the message is about, in a route that coalesces: see
	// RouteOptions. It is any bytes; an empty one is about nothing else.
	Subject string

	// Attempts counts the deliveries that the broker refused.
	Attempts uint32

	// Words are the parts of the routing key that come from the content, one
	// for each directory of the published path. The topic prefix goes before
	// them at publishing. Words may be empty strings and hold any byte.
	Words []string

	// Key, if HasKey is set, is the whole routing key, and Words has no say.
	Key    string
	HasKey bool

	// Exchange is the exchange that the record itself names, or empty.
	Exchange string

	// PubTime is the time at which the record says that it was first
	// published, or zero.
	PubTime time.Time

	// ContentType and ContentEncoding are the AMQP properties of these names.
	ContentType     string
	ContentEncoding string

	// Headers is the AMQP header table; nil sends none and an empty slice an
	// empty table, which are different things on the wire.
	Headers []Header

	// Properties are further AMQP properties by their names, such as "type" or
	// "priority", numbers in decimal. MessageID and the content's are elsewhere.
	Properties []Property

	// Body is what is published. In a dead letter that could not be decoded it
	// is the raw bytes of the record, in a partial file those of the file.
	Body []byte

	// Reason says why this is a dead letter or a partial file: a word with
	// hyphens, such as "not-json", and perhaps ": " and a detail. It is empty
	// in a message.
	Reason string

	// Partial says that Body is what is left of a file whose writer did not
	// get to its end, and no message: it is kept until somebody looks at it.
	Partial bool
}

// Header is one entry of a header table.
type Header struct {
	Name, Value string

	// JSON says that Value is the JSON text of a value that is not a string: a
	// number, true, false, null, an array or an object.
	JSON bool
}

// Property is one AMQP property.
type Property struct {
	Name, Value string
}

// Dead reports whether m is a dead letter.
func (m *Message) Dead() bool { return m.Reason != "" && !m.Partial }

// kind is that of the row of m.
func (m *Message) kind() byte {
	switch {
	case m.Partial:
		return kindPartial
	case m.Dead():
		return kindDead
	}
	return kindMessage
}
