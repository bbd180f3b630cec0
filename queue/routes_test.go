package queue

import (
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestQueue_RenameRoute: a route goes on under another name with its number, what it
// holds and what is leased, after a crash, too.
func TestQueue_RenameRoute(t *testing.T) {
	mem := vfs.NewCrashableMem()
	q, _, err := Open("store", testOptions(mem))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { q.Close() }()
	old, other := mustRoute(t, q, "old"), mustRoute(t, q, "other")
	s := putStage(t, old, 2)
	commit(t, s)
	held := putStage(t, old, 1)
	lease := leaseAll(t, old, 1)
	for _, c := range []struct {
		from, to string
		want     error
	}{{"old", "other", ErrExists}, {"none", "new", ErrNotFound}, {"old", "new", nil}, {"old", "newer", ErrNotFound}} {
		if err := q.RenameRoute(c.from, c.to); !errors.Is(err, c.want) {
			t.Errorf("rename %s to %s: %v, want %v", c.from, c.to, err, c.want)
		}
	}
	if err := old.Ack(lease...); err != nil {
		t.Error(err)
	}
	if got := mustRoute(t, q, "new"); got != old || got.Name() != "new" || held.Route() != old {
		t.Errorf("the route is %p %q, want %p", got, got.Name(), old)
	}
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	number := old.ID()
	q.Close()
	var stages []*Stage
	if q, stages, err = Open("store", testOptions(after)); err != nil {
		t.Fatal(err)
	}
	if names := routeNames(q); !slices.Equal(names, []string{"new", "other"}) {
		t.Errorf("routes are %q", names)
	}
	found := mustRoute(t, q, "new")
	if len(stages) != 1 || stages[0].Route() != found || found.ID() != number || other.ID() <= number {
		t.Errorf("%d stages, route %d of %d", len(stages), found.ID(), number)
	}
	// The ack was not synced and may have been lost with the machine.
	if ls := leaseAll(t, found, 1); ls[len(ls)-1].ID.File() != s.File() {
		t.Errorf("leased %s", ids(ls))
	}
	checkScan(t, found)
}

// TestQueue_RenameRouteFault: a rename that meets a fault leaves the route with the
// name that the disk has for it, be that the old or the new one, and nothing twice.
func TestQueue_RenameRouteFault(t *testing.T) {
	syncs := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo {
			return errorfs.ErrInjected
		}
		return nil
	})
	for name, injector := range map[string]errorfs.Injector{
		"old": errorfs.ErrInjected.If(errorfs.Writes), // nothing gets to the disk
		"new": syncs,                                  // it does, and nobody is told
	} {
		t.Run(name, func(t *testing.T) {
			failing := errorfs.Toggle{Injector: injector}
			q, _, err := Open("store", testOptions(errorfs.Wrap(vfs.NewCrashableMem(), &failing)))
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			r := mustRoute(t, q, "old")
			commit(t, putStage(t, r, 3))
			failing.On()
			if err := q.RenameRoute("old", "new"); !errors.Is(err, ErrFault) {
				t.Errorf("rename on a failing disk: %v", err)
			}
			until(t, "the store has failed", func() bool { return q.Faults() > 0 })
			failing.Off()
			until(t, "the store is open again", func() bool { _, err := q.Route(r.Name()); return err == nil })
			if ls := leaseAll(t, r, 3); len(ls) != 3 {
				t.Errorf("leased %d", len(ls))
			}
			if names := routeNames(q); !slices.Equal(names, []string{name}) || r.Name() != name || mustRoute(t, q, name) != r {
				t.Errorf("routes are %q, the route is %q", names, r.Name())
			}
			checkScan(t, r)
		})
	}
}

func mustRoute(t testing.TB, q *Queue, name string) *Route {
	t.Helper()
	r, err := q.Route(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func routeNames(q *Queue) (names []string) {
	for _, r := range q.Routes() {
		names = append(names, r.Name())
	}
	return names
}
