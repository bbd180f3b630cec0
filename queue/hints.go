package queue

import (
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// haveSubjects reports whether one of some messages is about something.
func haveSubjects(leases []*Lease) bool {
	return slices.ContainsFunc(leases, func(l *Lease) bool { return l.Subject != "" })
}

// forgetting lists the hints that tell of leases which are about to end.
func (r *Route) forgetting(leases []*Lease) (map[*Lease]subjectKey, error) {
	if !r.coalesce.Load() {
		return nil, nil
	}
	theirs := map[*Lease]subjectKey{}
	for _, l := range leases {
		if l.Subject == "" {
			continue
		}
		about := keyOfSubject(l.UID, l.Subject)
		h, found, err := r.hintOf(about)
		if err != nil {
			return nil, err
		}
		if found && h.seq == l.seq {
			theirs[l] = about
		}
	}
	return theirs, nil
}

// forgetLocked removes such hints.
func (r *Route) forgetLocked(b *pebble.Batch, theirs map[*Lease]subjectKey) error {
	for _, about := range theirs {
		if err := b.Delete(hintKey(r.id, about), nil); err != nil {
			return err
		}
	}
	return nil
}

// hintPage is how many hints are looked at in a second.
const hintPage = 256

// tendHints removes hints of messages that are gone: all when none waits or the route does
// not coalesce, else those of a page.
func (r *Route) tendHints() error {
	r.q.mu.Lock()
	some, all := r.hinted, !r.opts.Coalesce || r.count.pending.count+r.count.delayed.count == 0
	r.q.mu.Unlock()
	if !some {
		return nil
	}
	if all {
		return r.q.await(r.submitForgetAll())
	}
	release := r.orderly(true)
	w, err := r.submitForgetPage()
	release(w)
	return r.q.await(w, err)
}

// submitForgetAll removes all hints, if none can tell of a message. Not synced: what comes
// back is a hint.
func (r *Route) submitForgetAll() (*write, error) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	if r.opts.Coalesce && r.count.pending.count+r.count.delayed.count > 0 {
		return nil, nil // since it was asked
	}
	r.hinted = false
	b := r.q.engine.db.NewBatch()
	if err := b.DeleteRange(routeKey(kindLatest, r.id), routeKey(kindLatest, r.id+1), nil); err != nil {
		return nil, err
	}
	return r.q.submitLocked(b, false, r), nil
}

// submitForgetPage removes hints of messages that are not there, of the next page.
func (r *Route) submitForgetPage() (*write, error) {
	b, n := r.q.engine.db.NewBatch(), 0
	from := r.hintsTended
	if from == nil {
		from = routeKey(kindLatest, r.id)
	}
	r.hintsTended = nil
	err := r.q.eachRow(from, routeKey(kindLatest, r.id+1), func(key, value []byte) error {
		if n++; n > hintPage {
			r.hintsTended = slices.Clone(key)
			return errStop
		}
		h, bad := decodeHint(value)
		_, found, err := r.standing(subjectKey(key[5:]), h)
		if err != nil || bad == nil && found {
			return err
		}
		return b.Delete(key, nil)
	})
	if err != nil || b.Empty() {
		return nil, err
	}
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	return r.q.submitLocked(b, false, r), nil
}
