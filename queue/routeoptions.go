package queue

import "fmt"

// RouteOptions are how a route orders its messages, and what it does when they are
// many. The zero value is good. They
// are not stored: whoever opens the store sets them.
type RouteOptions struct {
	// Order is in which order Lease hands out what is ready. Default FIFO.
	Order Order

	// OnFull is what happens when the route or the store is full. Default Reject.
	OnFull OnFull

	// Share is the part of the Limits of the store that the route may fill, in all
	// states. Default 1; 0.5 for a route that drops, in which UserShare is not
	// judged, as its user shall not be refused.
	Share float64

	// Bytes and Messages bound the route further, if they are not 0: bytes of stored
	// records, and messages, dead letters included.
	Bytes, Messages uint64

	// Coalesce has a message that waits replaced by a later one of the same user with
	// the same Subject: see coalesce.go.
	Coalesce bool
}

// OnFull is a word of the configuration; see room.go.
type OnFull string

const (
	// Reject refuses what comes.
	Reject OnFull = "reject"

	// DropOldest drops the oldest messages that are ready, to make room.
	DropOldest OnFull = "drop-oldest"

	// DropNewest takes what comes and drops it.
	DropNewest OnFull = "drop-newest"
)

// Order is a word of the configuration.
type Order string

const (
	// FIFO is the order of the Puts: Q4.
	FIFO Order = "fifo"

	// NewestFirst is for consumers that prefer fresh messages while a backlog
	// drains: see newest.go.
	NewestFirst Order = "newest-first"
)

func (o *RouteOptions) ensureDefaults() {
	if o.Order == "" {
		o.Order = FIFO
	}
	if o.OnFull == "" {
		o.OnFull = Reject
	}
	switch {
	case o.Share != 0:
	case o.OnFull == Reject:
		o.Share = 1
	default:
		o.Share = 0.5
	}
}

// Validate finds what SetOptions would refuse.
func (o RouteOptions) Validate() error {
	o.ensureDefaults()
	if o.Order != FIFO && o.Order != NewestFirst {
		return fmt.Errorf("order %q: want %s or %s", o.Order, FIFO, NewestFirst)
	}
	if o.OnFull != Reject && o.OnFull != DropOldest && o.OnFull != DropNewest {
		return fmt.Errorf("on_full %q: want %s, %s or %s", o.OnFull, Reject, DropOldest, DropNewest)
	}
	if !(o.Share > 0 && o.Share <= 1) {
		return fmt.Errorf("share %g of the store: want more than 0 and at most 1", o.Share)
	}
	return nil
}

// SetOptions changes how the route goes on, from the next Lease on. Nothing is
// written, and what is stored stays.
func (r *Route) SetOptions(o RouteOptions) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("route %q: %w", r.Name(), err)
	}
	o.ensureDefaults()
	r.q.mu.Lock()
	r.opts = o
	r.coalesce.Store(o.Coalesce)
	r.endTurnLocked()
	r.q.mu.Unlock()
	r.signal()
	return nil
}

// Options returns what SetOptions has set.
func (r *Route) Options() RouteOptions {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	return r.opts
}
