package fs

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"syscall"
	"time"

	"spoolfs/queue"
)

// Action is what is done to many messages at once.
type Action string

// The actions.
const (
	Count   Action = "count"   // changes nothing
	Purge   Action = "purge"   // removes them
	Redrive Action = "redrive" // makes them ready: see statusTree.revive
)

// Selection says which messages are meant. Zero fields mean all.
type Selection struct {
	State  queue.State
	Route  string
	Before time.Time // stored before
	Reason string    // what their reason begins with
}

func (s Selection) matches(m *queue.Message) bool {
	return (s.Before.IsZero() || m.Ingested.Before(s.Before)) && strings.HasPrefix(m.Reason, s.Reason)
}

// Operation does something to all messages of a selection, in synced batches and
// without holding up those who write and publish. It looks at as many messages as
// there are when it begins.
type Operation struct {
	fs     *FS
	action Action
	sel    Selection

	mu    sync.Mutex
	tally Tally
}

// Tally is how far an operation is. Totals count messages, or partial files.
type Tally struct {
	Looked  uint64 // at
	Matched uint64
	Done    uint64 // of these; what is neither done nor refused was on its way to the broker

	Refused uint64 // are no messages, and stay
	Refusal string // the reason of the last of them

	// Reasons counts what matched by the first word of its reason. From
	// maxReasons on they are counted as "...".
	Reasons map[string]uint64
}

// maxReasons bounds Tally.Reasons.
const maxReasons = 50

// NewOperation prepares an operation.
//
// Errors: queue.ErrNotFound if there is no such route; EINVAL if what is pending
// is to be made ready, which it is.
func (fs *FS) NewOperation(action Action, sel Selection) (*Operation, error) {
	o := &Operation{fs: fs, action: action, sel: sel, tally: Tally{Reasons: map[string]uint64{}}}
	if len(o.routes()) == 0 {
		return nil, fmt.Errorf("route %q: %w", sel.Route, queue.ErrNotFound)
	}
	if action == Redrive && sel.State == queue.Pending {
		return nil, fmt.Errorf("redrive what is pending: %w", syscall.EINVAL)
	}
	return o, nil
}

// Tally returns a snapshot.
func (o *Operation) Tally() Tally {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.tally
	t.Reasons = maps.Clone(t.Reasons)
	return t
}

// Run does it. After an error what was done is done.
func (o *Operation) Run() error {
	for _, i := range o.routes() {
		var err error
		switch {
		case o.action == Count:
			err = o.count(i)
		case o.sel.State == queue.Partial:
			err = o.eachPartial(i)
		default:
			err = o.eachPage(i)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.action, err)
		}
	}
	return nil
}

// routes are the indexes of those that are meant.
func (o *Operation) routes() []int {
	var found []int
	for i, r := range o.fs.tree.all() {
		if o.sel.Route == "" || o.sel.Route == r.queue.Name() {
			found = append(found, i)
		}
	}
	return found
}

func (o *Operation) count(route int) error {
	for e, err := range o.fs.tree.route(route).Entries(o.sel.State, queue.Place{}) {
		if err != nil {
			return err
		}
		o.match(e.Message)
	}
	return nil
}

// match reports whether a message is meant, and counts it.
func (o *Operation) match(m *queue.Message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tally.Looked++
	if !o.sel.matches(m) {
		return false
	}
	o.tally.Matched++
	reason, _, _ := strings.Cut(m.Reason, ":")
	if reason == "" {
		return true
	}
	if _, known := o.tally.Reasons[reason]; !known && len(o.tally.Reasons) >= maxReasons {
		reason = "..."
	}
	o.tally.Reasons[reason]++
	return true
}

// eachPage works through messages in the batches of the queue.
func (o *Operation) eachPage(route int) error {
	id := statusID{kind: map[queue.State]statusKind{
		queue.Pending: kindPending, queue.Delayed: kindDelayed, queue.Dead: kindDead,
	}[o.sel.State], route: uint16(route)}
	n, err := o.fs.tree.route(route).ReplaceAll(o.sel.State, func(m *queue.Message) ([]queue.Message, bool) {
		if !o.match(m) {
			return nil, false
		}
		with, err := o.replacement(id, m)
		return with, err == nil
	})
	o.done(uint64(n))
	return err
}

// eachPartial works through partial files one by one: they are large, and to
// decode one takes longer than the queue may be held up.
func (o *Operation) eachPartial(route int) error {
	r := o.fs.tree.route(route)
	stats, err := r.Stats()
	if err != nil {
		return err
	}
	left := stats.Partial
	for e, err := range r.Entries(queue.Partial, queue.Place{}) {
		if err != nil || left == 0 {
			return err
		}
		left--
		if !o.match(e.Message) {
			continue
		}
		with, err := o.partialReplacement(route, e.Message)
		if err != nil {
			continue // and counted
		}
		switch err := r.Replace(queue.Partial, e.Place, with); {
		case err == nil:
			o.done(1)
		case !errors.Is(err, queue.ErrNotFound): // somebody else was faster
			return err
		}
	}
	return nil
}

func (o *Operation) partialReplacement(route int, m *queue.Message) ([]queue.Message, error) {
	o.fs.large <- struct{}{}
	defer func() { <-o.fs.large }()
	return o.replacement(statusID{kind: kindPartial, route: uint16(route)}, m)
}

// replacement is what takes the place of a message.
func (o *Operation) replacement(id statusID, m *queue.Message) ([]queue.Message, error) {
	if o.action == Purge {
		return nil, nil
	}
	with, err := o.fs.tree.revive(id, queue.Entry{Message: m})
	if err == nil {
		return with, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tally.Refused++
	o.tally.Refusal = err.Error()
	return nil, err
}

// done counts what has been done, here and in the totals of the tree.
func (o *Operation) done(n uint64) {
	total := &o.fs.tree.purged
	if o.action == Redrive {
		total = &o.fs.tree.redriven
	}
	total.Add(n)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tally.Done += n
}
