package queue

import "fmt"

// RouteOptions are how a route orders its messages. The zero value is good. They
// are not stored: whoever opens the store sets them.
type RouteOptions struct {
	// Order is in which order Lease hands out what is ready. Default FIFO.
	Order Order
}

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
}

// Validate finds what SetOptions would refuse.
func (o RouteOptions) Validate() error {
	o.ensureDefaults()
	if o.Order != FIFO && o.Order != NewestFirst {
		return fmt.Errorf("order %q: want %s or %s", o.Order, FIFO, NewestFirst)
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
