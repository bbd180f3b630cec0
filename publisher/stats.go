package publisher

import (
	"time"

	"spoolfs/queue"
)

// State is what a Publisher is doing.
type State string

const (
	Idle       State = "idle"       // nothing to send, no session
	Connecting State = "connecting" // dialling
	Connected  State = "connected"  // has a session
	Slowed     State = "slowed"     // has a session, and the broker refuses messages
	Blocked    State = "blocked"    // the broker takes nothing at the moment
	Waiting    State = "waiting"    // for the next attempt to dial
)

// Failure is a kind of failure.
type Failure struct {
	Class Class
	Cause Cause
}

// Stats is a snapshot of a Publisher. Totals count since it was made.
type Stats struct {
	State    State
	InFlight int // published without a verdict
	Window   int // how many may be at the moment

	// PausedUntil is the end of a pause because of a nack; it may be over.
	PausedUntil time.Time

	ConfirmedTotal  uint64 // taken by the broker
	ReturnedTotal   uint64 // of those, had no queue bound
	RejectedTotal   uint64 // nacked, to be tried again
	InvalidTotal    uint64 // dead-lettered, as the broker cannot take them
	RefusedTotal    uint64 // delayed, as what they name is missing or not allowed
	GivenUpTotal    uint64 // refused MaxAttempts times
	ExpiredTotal    uint64 // too old: dead-lettered, or gone with DropExpired
	FollowedTotal   uint64 // handed to a route that follows
	RequeuedTotal   uint64 // sent again, since their session was lost
	SessionsTotal   uint64 // sessions opened
	ReconnectsTotal uint64 // of those, after a failure
	FailuresTotal   uint64 // attempts and sessions that failed

	// Failures counts all that went wrong by its kind, whether it was a session
	// or a message. The kinds are few.
	Failures map[Failure]uint64

	// ConfirmDuration is how long verdicts took, from the publishing of a message.
	ConfirmDuration queue.DurationStats

	// RateLimited says that Options.Rate is set.
	RateLimited bool

	// AwaySince is when publishing began to fail; zero while all is well. It ends
	// with a verdict.
	AwaySince time.Time

	// LastError is what went wrong last, and when; empty while all has been
	// well. It stays after a recovery.
	LastError     string
	LastErrorTime time.Time
	LastCause     Cause  // its kind
	LastAdvice    string // what to do about it

	// NextAttempt is when Waiting ends.
	NextAttempt time.Time
}
