package queue

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Handover is how a lease ends when its message starts further work.
type Handover struct {
	Lease *Lease

	// Reason, if there is one, sets the message aside as a dead letter. Otherwise
	// it is gone.
	Reason string

	// Follow is what becomes ready in other routes.
	Follow []Follow
}

// Follow is a message for another route. It gets its parent's ID and the name of the
// route as its own, so that a parent that is confirmed twice has follow-ups that can
// be told to be the same. With a reason it is a dead letter of that route.
type Follow struct {
	Route   *Route
	Message Message
}

// HandOver ends leases and makes what follows ready, all or nothing. Not synced, as
// Ack: a crash that takes it back leaves the parents, whose follow-ups have the
// same IDs again. No limit holds up what follows, but a route that is full and drops
// messages does so here as well, as far as it can.
func (r *Route) HandOver(all ...Handover) error {
	if err := r.q.begin(); err != nil {
		return fmt.Errorf("hand over from route %q: %w", r.Name(), err)
	}
	defer r.q.end()
	entering := entrants(all)
	if err := makeRoomFor(entering, all); err != nil {
		return fmt.Errorf("hand over from route %q: %w", r.Name(), err)
	}
	release := r.orderlyEntry(all, entering)
	w, err := r.submitHandOver(all, entering)
	release(w)
	if err = r.q.await(w, err); err != nil {
		return fmt.Errorf("hand over from route %q: %w", r.Name(), err)
	}
	for _, in := range entering {
		if in.extent != nil {
			in.route.ready(in.extent)
		}
		if in.dropped > 0 {
			in.route.logDrops(in.dropped, dropsNewest)
		}
	}
	return nil
}

// makeRoomFor makes room in each route that makes some. What leaves makes room in the
// store for those that enter one.
func makeRoomFor(entering []*entrant, all []Handover) error {
	var leaves tally
	for _, h := range all {
		if h.Reason == "" {
			leaves.add(tally{1, h.Lease.bytes})
		}
	}
	for _, in := range entering {
		d := demand{anyway: true}
		for _, v := range in.values {
			d.more.add(v.size())
		}
		d.leaves = tally{min(leaves.count, d.more.count), min(leaves.bytes, d.more.bytes)}
		leaves.sub(d.leaves)
		if err := in.route.makeRoom(d); err != nil {
			return err
		}
	}
	return nil
}

// orderlyEntry is orderly for a hand-over: of the route that messages leave, and of those
// that they enter, in the order of their numbers.
func (r *Route) orderlyEntry(all []Handover, entering []*entrant) (release func(*write)) {
	var routes []*Route
	if slices.ContainsFunc(all, func(h Handover) bool { return h.Lease.Subject != "" }) {
		routes = append(routes, r)
	}
	for _, in := range entering {
		if !slices.Contains(routes, in.route) {
			routes = append(routes, in.route)
		}
	}
	slices.SortFunc(routes, func(a, b *Route) int { return cmp.Compare(a.id, b.id) })
	var releases []func(*write)
	for _, route := range routes {
		releases = append(releases, route.orderly(true))
	}
	return func(w *write) {
		for _, release := range slices.Backward(releases) {
			release(w)
		}
	}
}

// entrant are the messages that enter a route.
type entrant struct {
	route   *Route
	values  []value
	uids    []uint32 // of each
	extent  *extent
	dropped uint64

	coalescing *coalescing
}

// entrants are what enters each route, in the order of their parents.
func entrants(all []Handover) []*entrant {
	var entering []*entrant
	byRoute := map[*Route]*entrant{}
	for _, h := range all {
		for _, f := range h.Follow {
			in := byRoute[f.Route]
			if in == nil {
				in = &entrant{route: f.Route}
				byRoute[f.Route] = in
				entering = append(entering, in)
			}
			in.add(h.Lease, f.Message)
		}
	}
	return entering
}

func (in *entrant) add(parent *Lease, m Message) {
	m.ID = parent.ID + ID("/"+in.route.Name())
	m.UID = parent.UID
	in.values = append(in.values, value{m.kind(), encodeRecord(&m)})
	in.uids = append(in.uids, m.UID)
}

// enterLocked adds what enters to the batch. A route that is DropNewest drops and counts
// those for which there is no room, the last ones.
func (in *entrant) enterLocked(b *pebble.Batch) (err error) {
	r, fit := in.route, in.fitLocked()
	in.dropped = uint64(len(in.values) - fit)
	r.count.drops.newest += in.dropped
	if fit == 0 {
		return nil
	}
	if in.extent, err = r.appendLocked(b, in.values[:fit]); err != nil {
		return err
	}
	for i, v := range in.values[:fit] {
		r.q.chargeLocked(in.uids[i], v.size(), tally{})
	}
	return in.coalescing.applyLocked(b, in.extent.lo)
}

// fitLocked is how many there is room for. If what they replace makes room for all, all
// enter, else none replaces another one.
func (in *entrant) fitLocked() int {
	var size tally
	for _, v := range in.values {
		size.add(v.size())
	}
	if !in.route.dropsLocked(size.without(in.coalescing.size())) {
		return len(in.values)
	}
	in.coalescing = nil
	size = tally{}
	for fit, v := range in.values {
		if size.add(v.size()); in.route.dropsLocked(size) {
			return fit
		}
	}
	return len(in.values)
}

func (r *Route) submitHandOver(all []Handover, entering []*entrant) (*write, error) {
	b := r.q.engine.db.NewBatch()
	theirs, err := r.coalesceEntry(all, entering)
	if err != nil {
		return nil, err
	}
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	for _, h := range all {
		if h.Lease.settled {
			return nil, fmt.Errorf("%w: %s", ErrNotLeased, h.Lease.ID)
		}
	}
	for _, h := range all {
		if err := r.endHandedLocked(b, h); err != nil {
			return nil, err
		}
	}
	r.trimLeasedLocked()
	if err := r.forgetLocked(b, theirs); err != nil {
		return nil, err
	}
	routes := []*Route{r}
	for _, in := range entering {
		if in.route != r {
			routes = append(routes, in.route)
		}
		if err := in.enterLocked(b); err != nil {
			return nil, err
		}
	}
	return r.q.submitLocked(b, false, routes...), nil
}

// coalesceEntry finds what the messages replace that enter each route, and the hints that
// tell of those which leave this one.
func (r *Route) coalesceEntry(all []Handover, entering []*entrant) (theirs map[*Lease]subjectKey, err error) {
	leases := make([]*Lease, len(all))
	for i, h := range all {
		leases[i] = h.Lease
	}
	if theirs, err = r.forgetting(leases); err != nil {
		return nil, err
	}
	for _, in := range entering {
		if in.coalescing, err = in.route.coalesceValues(in.values); err != nil {
			return nil, err
		}
	}
	return theirs, nil
}

// endHandedLocked ends the lease of a message that is gone or a dead letter now.
func (r *Route) endHandedLocked(b *pebble.Batch, h Handover) error {
	if err := r.removeLeasedLocked(b, h.Lease); err != nil || h.Reason == "" {
		return err
	}
	m := *h.Lease.Message
	m.Reason = h.Reason
	return r.setDeadLocked(b, h.Lease, encodeRecord(&m))
}

// setDeadLocked puts a dead letter in the place of a message.
func (r *Route) setDeadLocked(b *pebble.Batch, l *Lease, record []byte) error {
	size := tally{1, uint64(len(record))}
	r.count.dead.add(size)
	r.q.chargeLocked(l.UID, size, tally{})
	return b.Set(seqKey(kindDead, r.id, l.seq), record, nil)
}

// removeLeasedLocked ends a lease and deletes its row.
func (r *Route) removeLeasedLocked(b *pebble.Batch, l *Lease) error {
	r.endLeaseLocked(l)
	r.goneLocked(l.seq)
	r.count.pending.sub(tally{1, l.bytes})
	r.q.chargeLocked(l.UID, tally{}, tally{1, l.bytes})
	return b.Delete(seqKey(kindMessage, r.id, l.seq), nil)
}
