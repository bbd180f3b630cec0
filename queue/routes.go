package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// ID is the number of the route. It keeps that as long as the store lives, also
// under another name; a route that is made later has a larger one.
func (r *Route) ID() uint32 { return r.id }

// Route returns the route of the stage.
func (s *Stage) Route() *Route { return s.route }

// Routes lists the routes of the store in the order of their numbers, also those
// that nobody has asked for since it was opened.
func (q *Queue) Routes() []*Route {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.SortedFunc(maps.Values(q.routes), func(a, b *Route) int { return cmp.Compare(a.id, b.id) })
}

// RenameRoute gives a route another name, with all that it holds. It is on stable
// storage when that returns. Leases and stages of the route go on. Nobody may ask
// for a route of the new name meanwhile.
//
// Errors: ErrNotFound if there is no route from, ErrExists if there is one of the
// name to already, ErrFault, ErrClosed.
func (q *Queue) RenameRoute(from, to string) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.end()
	r, w, err := q.submitRename(from, to)
	if err = q.await(w, err); err != nil {
		return fmt.Errorf("rename route %q to %q: %w", from, to, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.renameLocked(r, to)
	return nil
}

func (q *Queue) submitRename(from, to string) (*Route, *write, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.routes[from]
	switch {
	case r == nil:
		return nil, nil, ErrNotFound
	case q.routes[to] != nil:
		return nil, nil, ErrExists
	}
	b := q.engine.db.NewBatch()
	if err := writeRouteName(b, r.id, to); err != nil {
		return nil, nil, err
	}
	// Synced: with the old name a configuration would not find it.
	return r, q.submitLocked(b, true, r), nil
}

func writeRouteName(b *pebble.Batch, id uint32, name string) error {
	return b.Set(routeKey(kindRoute, id), encodeRouteName(name), nil)
}

func (q *Queue) renameLocked(r *Route, name string) {
	delete(q.routes, r.Name())
	r.setName(name)
	q.routes[name] = r
}

// settleNames gives routes the names that the store has for their numbers: a
// rename that met a fault may or may not be on the disk.
func (q *Queue) settleNames(im *image) {
	q.mu.Lock()
	defer q.mu.Unlock()
	byID := map[uint32]*Route{}
	for _, r := range q.routes {
		byID[r.id] = r
	}
	for name, now := range im.routes {
		if r := byID[now.id]; r != nil && r.Name() != name {
			q.renameLocked(r, name)
		}
	}
}
