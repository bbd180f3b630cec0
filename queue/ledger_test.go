package queue

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// ledger remembers what a queue has promised, whatever happened to it since.
type ledger struct {
	mu sync.Mutex

	// stored: the Put or Append of the message has returned nil. released: it
	// may be gone, since an Ack, a Discard or a cut of it has begun. A message
	// that is in neither may be there, but not twice.
	known, stored, released map[ID]bool
}

func newLedger() *ledger {
	return &ledger{known: map[ID]bool{}, stored: map[ID]bool{}, released: map[ID]bool{}}
}

func (l *ledger) note(set map[ID]bool, ids []ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		set[id] = true
	}
}

func (l *ledger) know(ids ...ID)    { l.note(l.known, ids) }
func (l *ledger) store(ids ...ID)   { l.note(l.stored, ids) }
func (l *ledger) release(ids ...ID) { l.note(l.released, ids) }

// snapshot copies the ledger as it is now.
func (l *ledger) snapshot() *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &ledger{known: maps.Clone(l.known), stored: maps.Clone(l.stored), released: maps.Clone(l.released)}
}

// check compares with what is in a queue that nobody else uses: nothing lost,
// nothing twice, nothing unknown, and counters that equal a scan.
func (l *ledger) check(q *Queue) error {
	found, err := scanIDs(q)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range found {
		if n > 1 {
			return fmt.Errorf("%s is there %d times", id, n)
		}
		if !l.known[id] {
			return fmt.Errorf("%s was never put", id)
		}
	}
	for id := range l.stored {
		if !l.released[id] && found[id] == 0 {
			return fmt.Errorf("%s is lost", id)
		}
	}
	return nil
}

// scanIDs counts the rows of each message, and compares the counters.
func scanIDs(q *Queue) (map[ID]int, error) {
	found := map[ID]int{}
	for _, r := range allRoutes(q) {
		if err := scanCounters(r); err != nil {
			return nil, fmt.Errorf("route %q: %w", r.Name(), err)
		}
		for _, kind := range append([]byte{kindDelayed}, contentKinds...) {
			err := q.eachRow(routeKey(kind, r.id), routeKey(kind, r.id+1), func(_, value []byte) error {
				m, err := decodeRecord(value)
				if err == nil {
					found[m.ID]++
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

func allRoutes(q *Queue) []*Route {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.SortedFunc(maps.Values(q.routes), func(a, b *Route) int { return int(a.id) - int(b.id) })
}

func messageIDs(ms []Message) []ID {
	ids := make([]ID, len(ms))
	for i := range ms {
		ids[i] = ms[i].ID
	}
	return ids
}

// bound is how long a test waits for what must happen. It only fails the test.
const bound = 30 * time.Second

// within calls f, and fails the test with all stacks if it does not return.
func within(t testing.TB, name string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s did not return in %v\n%s", name, bound, stacks[:runtime.Stack(stacks, true)])
		return nil
	}
}

// until calls f until it returns true.
func until(t testing.TB, name string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bound); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in %v", name, bound)
		}
	}
}

// chaos says that the long forms of the crash tests are wanted.
func chaos() bool { return os.Getenv("SPOOLFS_CHAOS") != "" }

// scanCounters counts the rows of a route and compares with its Stats.
func scanCounters(r *Route) error {
	want, err := r.Stats()
	if err != nil {
		return err
	}
	var got Stats
	for kind, n := range map[byte]*uint64{kindMessage: &got.Ready, kindDead: &got.Dead, kindPartial: &got.Partial, kindDelayed: &got.Delayed} {
		err := r.q.eachRow(routeKey(kind, r.id), routeKey(kind, r.id+1), func(key, value []byte) error {
			got.Bytes += uint64(len(value))
			r.q.mu.Lock()
			defer r.q.mu.Unlock()
			seq := lastUint64(key)
			if i := r.searchStagedLocked(seq + 1); kind != kindDelayed && i > 0 && r.staged[i-1].hi > seq {
				got.Staged++
			} else {
				*n++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	got.Leased = want.Leased
	got.Ready -= got.Leased
	got.Oldest = want.Oldest
	got.DroppedOldest, got.DroppedNewest, got.Coalesced = want.DroppedOldest, want.DroppedNewest, want.Coalesced
	if got != want {
		return fmt.Errorf("counters are %+v, a scan finds %+v", want, got)
	}
	return nil
}

// leaseAll leases exactly n messages or fails.
func leaseAll(t testing.TB, r *Route, n int) []*Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var leases []*Lease
	for len(leases) < n {
		more, err := r.Lease(ctx, n-len(leases))
		if err != nil {
			t.Fatalf("leased %d of %d: %v", len(leases), n, err)
		}
		leases = append(leases, more...)
	}
	return leases
}
