package queue

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// repair makes the counters and indexes of a database fit its rows, adds what
// was damaged to its report, and syncs. Messages are not touched; rows of other
// kinds that cannot be understood are moved to keys of kind 'x'.
//
// It can be repeated: a crash in it leaves a part of the changes.
func repair(e *engine, damage DamageReport) (*audit, error) {
	var a *audit
	err := guarded(func() (err error) {
		a, err = newAudit(e.db)
		return err
	})
	if err != nil {
		return a, e.condemn(err)
	}
	b := e.db.NewBatch()
	for _, s := range a.stages {
		if s.bad {
			a.strays = append(a.strays, s.keys...)
		}
	}
	for _, key := range a.strays {
		if err := moveStray(e, b, key); err != nil {
			return a, err
		}
		damage.Damaged++
	}
	for _, id := range sortedKeys(a.routes) {
		r := a.routes[id]
		damage.Missing += r.missing()
		if err := r.rewrite(b); err != nil {
			return a, err
		}
	}
	if err := a.rewriteUsers(b); err != nil {
		return a, err
	}
	if damage != (DamageReport{}) {
		a.damage.add(damage)
		if err := b.Set(damageKey(nil), a.damage.encode(), nil); err != nil {
			return a, err
		}
	}
	return a, e.await(e.submit(b, true, nil))
}

// rewriteUsers stores what the users have as it was found.
func (a *audit) rewriteUsers(b *pebble.Batch) error {
	for uid := range a.charged {
		if err := b.Delete(userKey(uid), nil); err != nil {
			return err
		}
	}
	for uid, t := range a.users {
		if err := b.Set(userKey(uid), encodeUser(t), nil); err != nil {
			return err
		}
	}
	return nil
}

// moveStray sets a row aside.
func moveStray(e *engine, b *pebble.Batch, key []byte) error {
	return guarded(func() error {
		value, closer, err := e.db.Get(key)
		if err != nil {
			return err
		}
		defer closer.Close()
		if err := b.Set(damageKey(key), value, nil); err != nil {
			return err
		}
		return b.Delete(key, nil)
	})
}

// rewrite stores the name and the counters of the route as they were found.
func (r *auditRoute) rewrite(b *pebble.Batch) error {
	if !r.named {
		if err := b.Set(routeKey(kindRoute, r.id), encodeRouteName(r.name), nil); err != nil {
			return err
		}
	}
	c := r.found
	// Numbers are not used twice, as far as is known.
	c.next = max(c.next, r.stored.next, firstNumber)
	c.drops = r.stored.drops
	c.head = c.next
	if c.pending.count > 0 {
		c.head = r.lowest
	}
	return b.Set(routeKey(kindCounters, r.id), c.encode(), nil)
}

// missing is how many messages the stored counters know that were not found.
func (r *auditRoute) missing() uint64 {
	if stored, found := r.stored.all().count, r.found.all().count; stored > found {
		return stored - found
	}
	return 0
}
