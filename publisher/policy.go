package publisher

// A fate is what becomes of a message.
type fate uint8

const (
	again   fate = iota // ready in its old place, the attempt does not count
	delayed             // counts as an attempt, and waits
	dead                // set aside with its reason
	gone                // leaves the queue
)

// An effect is what becomes of the route.
type effect uint8

const (
	goesOn     effect = iota
	reconnects        // dials again after a random wait that grows
	slows             // the window halves, and a pause that grows
	waits             // for LazyWait
)

// policy is what a class of failure means.
type policy struct {
	message fate
	route   effect
}

// policies is the verdict table of the design, all of it but for the bound of
// retries.go: package amqp turns
// what the broker says into a Class, and nothing else decides what follows.
var policies = map[Class]policy{
	Retriable:   {again, reconnects},
	Refused:     {delayed, slows},
	Lazy:        {again, waits},
	LazyMessage: {delayed, goesOn},
	Invalid:     {dead, goesOn},
	Unroutable:  {gone, goesOn}, // or by Options.Returned
	Expired:     {dead, goesOn}, // or by Options.DropExpired
}

// Returned is the policy for messages for which no queue was bound. All are
// counted.
type Returned string

const (
	ReturnedCount Returned = "count" // they are delivered, as a topic exchange means it
	ReturnedRetry Returned = "retry" // tried again later
	ReturnedDead  Returned = "dead"  // set aside
)

// policyOf is the policy of a class with the options of the route.
func (o *Options) policyOf(c Class) policy {
	switch {
	case c == Unroutable && o.Returned == ReturnedRetry:
		return policies[LazyMessage]
	case c == Unroutable && o.Returned == ReturnedDead:
		return policy{dead, goesOn}
	case c == Expired && o.DropExpired:
		return policy{gone, goesOn}
	}
	return policies[c]
}
