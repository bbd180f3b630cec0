package publisher

import "spoolfs/queue"

// Session is one connection to a broker on which messages are published, and
// which tells what became of each. Publish and Flush are called by one goroutine
// at a time; the other methods may be called at any time.
type Session interface {
	// Publish hands a message to the broker, at the latest with the next Flush,
	// and returns without waiting for its verdict. An *InvalidError says that this message cannot be sent at
	// all and that the session is as good as before; after any other error
	// the session is broken and what has no verdict yet is unknown.
	Publish(Publication) error

	// Flush sends what is not sent yet. After an error the session is broken.
	Flush() error

	// Verdicts delivers the verdict of each publication. It is closed when
	// the session has ended, by Close or by itself; publications without a
	// verdict are unknown then.
	Verdicts() <-chan Verdict

	// Err says why the session ended; nil while it lives and after Close. A
	// *Fault in it says what is known of the cause.
	Err() error

	// Blocked is the reason for which the broker takes no messages at the
	// moment (a memory or disk alarm), or empty.
	Blocked() string

	// Close ends the session and returns when Verdicts is closed. It may be
	// called twice.
	Close() error
}

// Publication is a message on its way to the broker.
type Publication struct {
	// Tag is chosen by the caller and comes back in the verdict.
	Tag uint64

	Exchange string
	Key      string // routing key, at most 255 bytes
	Message  *queue.Message
}

// Verdict is what the broker said about a publication.
type Verdict struct {
	Tag     uint64
	Outcome Outcome

	// Returned says that no queue was bound for the message: the broker gave
	// it back before it confirmed it. Reason has the broker's words.
	Returned bool
	Reason   string
}

// Outcome is the kind of a verdict.
type Outcome uint8

const (
	Confirmed Outcome = iota + 1 // the broker took responsibility (basic.ack)
	Rejected                     // the broker refused it for now (basic.nack)
)

// InvalidError says that a message can never be sent as it is.
type InvalidError struct {
	Reason string // as in queue.Message.Reason
}

func (e *InvalidError) Error() string { return "invalid message: " + e.Reason }
