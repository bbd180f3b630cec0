package publisher

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"spoolfs/queue"
)

// convict deals with an exception of the channel that one of the messages in
// flight has caused.
//
// If the broker's words are about an exchange that records have named, messages
// to it wait; about the exchange of the route, the route waits. Else the message
// is settled if it was alone in flight, and if it was not, all that were are
// suspects: the next session sends them one by one, until the culprit stands
// alone.
func (r *run) convict() error {
	var f *Fault
	if !errors.As(r.session.Err(), &f) || !f.Culprit {
		r.shun(time.Now())
		return nil
	}
	r.mu.Lock()
	flying := r.flying.all()
	r.mu.Unlock()
	exchange, about := r.accused(f, flying)
	switch {
	case about && r.p.exchanges.owns(exchange):
		return nil // Lazy, and so the route is
	case about:
		r.p.exchanges.avoid(exchange, time.Now().Add(r.p.opts.LazyWait))
		r.settled(f)
		return nil
	case len(flying) != 1:
		r.p.window.suspect(len(flying))
		r.settled(f)
		return nil
	}
	r.settled(f)
	r.p.window.acquit(1)
	l := flying[0]
	if f.Class == Lazy {
		r.p.fail(fmt.Errorf("message %s: %w", l.ID, f))
		return r.p.settle(flight{lease: l}, LazyMessage, "")
	}
	return r.p.settle(flight{lease: l}, Invalid, "refused-by-broker: "+f.Error())
}

// shun has messages to an exchange wait that a record has named, if no others lack
// their verdict for too long: a queue behind it hangs, at a broker that is well. The
// route would stand still again and again for as long as it takes to notice.
func (r *run) shun(now time.Time) {
	r.mu.Lock()
	silent := r.err != nil && faultOf(r.err).Cause == Silent
	late := r.flying.overdue(now.Add(-r.p.opts.ConfirmTimeout))
	r.mu.Unlock()
	isOwn := func(l *queue.Lease) bool { return !r.p.exchanges.named(l.Message) }
	if !silent || slices.ContainsFunc(late, isOwn) {
		return
	}
	for _, l := range late {
		r.p.exchanges.avoid(l.Exchange, now.Add(r.p.opts.LazyMax))
	}
}

// settled has the session count as one that ended of itself, with the next dial
// soon: what it failed of is dealt with.
func (r *run) settled(f *Fault) {
	r.p.healthy.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = &Fault{Class: Retriable, Cause: f.Cause, Err: f.Err}
}

// accused is the exchange that the broker's words are about. It is the longest
// of those in flight for which that can be, since a record may name one that
// contains what the broker says of another.
func (r *run) accused(f *Fault, flying []*queue.Lease) (exchange string, about bool) {
	if f.About == nil {
		return "", false
	}
	seen := make(map[string]bool)
	for _, l := range flying {
		e := r.p.exchanges.of(l.Message)
		if seen[e] {
			continue
		}
		seen[e] = true
		if (!about || len(e) > len(exchange)) && f.About(e) {
			exchange, about = e, true
		}
	}
	return exchange, about
}
