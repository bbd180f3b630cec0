package publisher

import "time"

// State is what a Publisher is doing.
type State string

const (
	Idle       State = "idle"       // nothing to send, no session
	Connecting State = "connecting" // dialling
	Connected  State = "connected"  // has a session
	Blocked    State = "blocked"    // the broker takes nothing at the moment
	Waiting    State = "waiting"    // for the next attempt to dial
)

// Stats is a snapshot of a Publisher. Totals count since it was made.
type Stats struct {
	State    State
	InFlight int // published without a verdict

	ConfirmedTotal uint64 // taken by the broker
	ReturnedTotal  uint64 // of those, had no queue bound
	RejectedTotal  uint64 // nacked, to be tried again
	InvalidTotal   uint64 // dead-lettered
	RequeuedTotal  uint64 // sent again, since their session was lost
	SessionsTotal  uint64 // sessions opened

	// LastError is what went wrong last, and when; empty while all has been
	// well. It stays after a recovery.
	LastError     string
	LastErrorTime time.Time

	// NextAttempt is when Waiting ends.
	NextAttempt time.Time
}
