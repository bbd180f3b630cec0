package publisher

import (
	"fmt"
	"path"
	"slices"
	"time"

	"spoolfs/queue"
)

// maxNamed bounds the exchanges that are remembered as missing or refused.
const maxNamed = 1024

// exchanges decides to which exchange a message goes. Only the goroutine of Run
// uses it.
type exchanges struct {
	own     []string
	code    func(*queue.Message) int // which of several, modulo their number
	allowed []string                 // patterns

	// lazy are those that records name and that the broker does not have or
	// refuses, with the time at which to try again: else each message of a
	// flood that names one would cost a session.
	lazy map[string]time.Time
}

// of is the exchange of a message.
func (e *exchanges) of(m *queue.Message) string {
	switch {
	case m.Exchange != "":
		return m.Exchange
	case len(e.own) == 1:
		return e.own[0]
	}
	return e.own[e.code(m)%len(e.own)]
}

// named reports whether it is the message that chose its exchange.
func (e *exchanges) named(m *queue.Message) bool {
	return m.Exchange != "" && !e.owns(m.Exchange)
}

// owns reports whether an exchange is the route's.
func (e *exchanges) owns(exchange string) bool { return slices.Contains(e.own, exchange) }

// OwnExchanges are the exchanges of a route: the one of that name, or, if it is
// split, so many, whose names end in two digits.
func OwnExchanges(name string, split int) []string {
	if split == 0 {
		return []string{name}
	}
	names := make([]string, split)
	for i := range names {
		names[i] = fmt.Sprintf("%s%02d", name, i)
	}
	return names
}

// allows reports whether the configuration lets records name an exchange.
func (e *exchanges) allows(exchange string) bool {
	for _, pattern := range e.allowed {
		// The pattern was checked by Options.validate.
		if ok, _ := path.Match(pattern, exchange); ok {
			return true
		}
	}
	return false
}

// avoid has messages to an exchange wait until a time.
func (e *exchanges) avoid(exchange string, until time.Time) {
	if len(e.lazy) >= maxNamed || e.lazy == nil {
		e.lazy = make(map[string]time.Time)
	}
	e.lazy[exchange] = until
}

// avoided reports whether an exchange is not to be tried yet.
func (e *exchanges) avoided(exchange string, now time.Time) bool {
	until, ok := e.lazy[exchange]
	if ok && now.After(until) {
		delete(e.lazy, exchange)
		return false
	}
	return ok
}
