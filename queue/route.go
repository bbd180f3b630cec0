package queue

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Route is one FIFO of messages, unless its options say otherwise. Routes do not wait
// for each other.
type Route struct {
	q    *Queue
	id   uint32
	name atomic.Pointer[string] // changed by Rename alone

	// leasing is held by the one Lease that looks for messages, and by those who must
	// not meet it. It guards hintsTended, where tendHints goes on.
	leasing     sync.Mutex
	hintsTended []byte

	coalesce atomic.Bool // opts.Coalesce

	// wake holds a token when there may be something to lease.
	wake chan struct{}

	// The fields below are guarded by q.mu.

	opts  RouteOptions
	count counters

	// Numbers below cursor have been handed out once or belong to a stage that
	// was passed over. What became ready again behind it is in behind.
	cursor uint64
	behind spans

	// turn is what of behind goes next while nothing is newer: see newest.go.
	turn spans

	// reading is what a Lease has taken from cursor, behind or turn and is
	// reading from the disk at the moment.
	reading spans

	staged   []*extent // sorted by lo
	leased   []*Lease  // sorted by seq; settled ones leave it lazily
	settled  int       // how many of leased are settled
	gone     spans     // of a route that is NewestFirst: what has drained since the last sweep
	unpacked uint64    // rows that were swept since the last compaction
	swept    span      // where they were

	hinted bool // there may be rows of kind 'l'

	dropLogged time.Time // when the log was told of dropped messages
	unlogged   uint64    // what was dropped since then
	nextDue    int64     // of the first delayed message; 0 when there is none
}

// extent is the range of numbers that one Put of a stage took.
type extent struct {
	span
	stage *Stage // nil for an Append, or for what a stage gives up: Lease waits for the disk
	since time.Time
}

const tagRouteName = 1 // in the row of kind 'r'

// firstNumber is the number of the first record of a route: 0 would make its Place
// the one before all.
const firstNumber = 1

func newRoute(q *Queue, id uint32) *Route {
	r := &Route{q: q, id: id, wake: make(chan struct{}, 1)}
	r.opts.ensureDefaults()
	r.count.next, r.cursor = firstNumber, firstNumber
	return r
}

// Route returns the route of that name and makes it if it is new.
func (q *Queue) Route(name string) (*Route, error) {
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.end()
	r, w, err := q.submitRoute(name)
	if err = q.await(w, err); err != nil {
		return nil, fmt.Errorf("route %q: %w", name, err)
	}
	return r, nil
}

func (q *Queue) submitRoute(name string) (*Route, *write, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := q.routes[name]; r != nil {
		return r, nil, nil
	}
	r := newRoute(q, q.nextRouteIDLocked())
	r.setName(name)
	b := q.engine.db.NewBatch()
	if err := r.write(b); err != nil {
		return nil, nil, err
	}
	// Synced, since rows that name the route by its number follow.
	q.routes[name] = r
	return r, q.submitLocked(b, true, r), nil
}

// write adds the row with the name of the route.
func (r *Route) write(b *pebble.Batch) error { return writeRouteName(b, r.id, r.Name()) }

// nextRouteIDLocked is behind all that are taken; damage may leave gaps.
func (q *Queue) nextRouteIDLocked() uint32 {
	id := uint32(0)
	for _, r := range q.routes {
		id = max(id, r.id)
	}
	return id + 1
}

func encodeRouteName(name string) []byte {
	w := newFieldWriter(len(name))
	w.text(tagRouteName, name)
	return w.finish()
}

func decodeRouteName(value []byte) (name string, err error) {
	err = eachField(value, func(tag uint64, content []byte) error {
		if tag == tagRouteName {
			name = string(content)
		}
		return nil
	})
	return name, err
}

// Name returns the name of the route.
func (r *Route) Name() string {
	if name := r.name.Load(); name != nil {
		return *name
	}
	return ""
}

func (r *Route) setName(name string) { r.name.Store(&name) }

// headLocked is the smallest number that may be ready or leased. Stages do not
// count: they remember their numbers themselves.
func (r *Route) headLocked() uint64 {
	head := r.cursor
	for _, ss := range [...]spans{r.behind, r.turn, r.reading} {
		if len(ss) > 0 {
			head = min(head, ss[0].lo)
		}
	}
	if len(r.leased) > 0 {
		head = min(head, r.leased[0].seq)
	}
	return head
}

// signal tells Lease that there may be something to do.
func (r *Route) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// addExtentLocked registers numbers that are not ready yet. They are the
// largest so far, except when a store is opened.
func (r *Route) addExtentLocked(e *extent) {
	i := len(r.staged)
	if i > 0 && r.staged[i-1].lo > e.lo {
		i = r.searchStagedLocked(e.lo)
	}
	r.staged = slices.Insert(r.staged, i, e)
}

// searchStagedLocked finds the first extent that does not begin before seq.
func (r *Route) searchStagedLocked(seq uint64) int {
	i, _ := slices.BinarySearchFunc(r.staged, seq, func(e *extent, seq uint64) int {
		if e.lo < seq {
			return -1
		}
		return 1
	})
	return i
}

// dropExtentLocked forgets an extent; its messages are ready if ready is set.
func (r *Route) dropExtentLocked(e *extent, ready bool) {
	i := r.searchStagedLocked(e.lo)
	if i < len(r.staged) && r.staged[i] == e {
		r.staged = slices.Delete(r.staged, i, i+1)
	}
	// Numbers at or above the cursor will be come upon. The others were passed
	// over, and go out next.
	if ready && e.lo < r.cursor {
		r.passedOverLocked(e.span)
	}
}

// passedOverLocked has numbers leased next that became ready only now, when later
// ones may have been leased.
func (r *Route) passedOverLocked(sp span) {
	r.behind.add(sp)
	if r.opts.Order == FIFO {
		r.q.late += sp.hi - sp.lo
	}
}

// dueOf reads the due time from the key of a delayed message.
func dueOf(key []byte) int64 {
	return int64(binary.BigEndian.Uint64(key[5:]))
}
