package queue

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Queue is an open store. Its methods may be called from any goroutine.
//
// When the disk fails or is full, the queue parks: what is under way gets an
// ErrFault, the database is opened again until that succeeds, and the queue goes
// on where the disk says it was. Leases are dropped by that, and their messages
// are ready again.
type Queue struct {
	dir  string
	opts Options
	lock io.Closer

	// done is closed when the queue closes. Operations under way are counted,
	// background is the goroutine that reopens.
	done       chan struct{}
	active     atomic.Int64
	refusal    atomic.Pointer[error] // what begin answers; nil to go ahead
	background sync.WaitGroup
	free       freeSpace
	faults     chan struct{} // holds a token when the engine may have failed

	mu      sync.Mutex // see Locks in doc.go
	engine  *engine    // changes only while no operation is under way
	routes  map[string]*Route
	stages  map[FileID]*Stage
	limits  Limits
	users   map[uint32]tally
	charged map[uint32]bool // whose row the next batch writes
	stored  tally           // the sum over all users
	parked  error           // an ErrFault while there is no engine to use
	resumed chan struct{}   // closed when that is over
	closed  bool
	parks   uint64 // how often it was parked
	late    uint64 // messages that were passed over
	damage  DamageReport
	asideOf *engine // whose database was set aside
}

// Open opens the store in dir, and makes it if it is not there. It returns the
// stages that were neither committed nor discarded, in the order of their last
// Put; the caller decides about each. The directory must be on a local disk.
//
// Errors: ErrLocked, ErrNewerStore, or what the disk said.
func Open(dir string, opts Options) (*Queue, []*Stage, error) {
	opts.ensureDefaults()
	exists, err := checkFormat(opts.FS, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open store %q: %w", dir, err)
	}
	q := newQueue(dir, opts)
	if err := q.open(exists); err != nil {
		return nil, nil, fmt.Errorf("open store %q: %w", dir, err)
	}
	q.background.Go(q.keepOpen)
	return q, q.openStages(), nil
}

// newQueue returns a queue that has taken up nothing yet.
func newQueue(dir string, opts Options) *Queue {
	return &Queue{
		dir: dir, opts: opts, done: make(chan struct{}), faults: make(chan struct{}, 1),
		routes: map[string]*Route{}, stages: map[FileID]*Stage{}, charged: map[uint32]bool{},
	}
}

func (q *Queue) open(exists bool) (err error) {
	if err := q.opts.FS.MkdirAll(q.dir, 0o700); err != nil {
		return err
	}
	if q.lock, err = lockStore(q.opts.FS, q.dir, q.opts.LockTimeout); err != nil {
		return err
	}
	if !exists {
		err = writeFormat(q.opts.FS, q.dir)
	}
	if err == nil {
		err = syncStore(q.opts.FS, q.dir)
	}
	if err == nil {
		q.setLimits()
		if err = q.load(); isFull(err) && q.dropBallast() {
			err = q.load()
		}
	}
	if err != nil {
		return errors.Join(err, q.lock.Close())
	}
	return nil
}

// setLimits fills in the limits that depend on the file system.
func (q *Queue) setLimits() {
	q.limits = q.opts.Limits
	q.limits.ensureDefaults(q.totalDisk())
}

func (q *Queue) database() string { return q.opts.FS.PathJoin(q.dir, databaseDir) }

// lockStore takes the lock of the store. A process that was killed holds it
// until the kernel has taken it apart, so it waits a little.
func lockStore(fsys vfs.FS, dir string, timeout time.Duration) (io.Closer, error) {
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		lock, err := fsys.Lock(fsys.PathJoin(dir, lockFile))
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, err
		}
		if !time.Now().Before(deadline) {
			return nil, fmt.Errorf("%w: stop it or give another directory", ErrLocked)
		}
	}
}

// Close stops all operations and closes the store. Stages that are open stay
// staged and are handed back by the next Open.
func (q *Queue) Close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	q.refuseLocked()
	close(q.done)
	q.mu.Unlock()
	q.background.Wait()
	q.awaitIdle()
	return errors.Join(q.engine.close(), q.lock.Close())
}

// begin enters an operation that uses the database; end leaves it. All writers
// pass here, so it takes no lock.
func (q *Queue) begin() error {
	q.active.Add(1)
	if refusal := q.refusal.Load(); refusal != nil {
		q.active.Add(-1)
		return *refusal
	}
	return nil
}

func (q *Queue) end() { q.active.Add(-1) }

// awaitIdle waits until no operation is under way, once begin refuses.
func (q *Queue) awaitIdle() {
	for q.active.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// refuseLocked sets what begin answers from what the queue is.
func (q *Queue) refuseLocked() {
	switch err := ErrClosed; {
	case q.closed:
		q.refusal.Store(&err)
	case q.parked != nil:
		err = q.parked
		q.refusal.Store(&err)
	default:
		q.refusal.Store(nil)
	}
}

// submitLocked hands over a batch with the counters of its routes and users. The
// caller awaits it once it has let go of q.mu.
func (q *Queue) submitLocked(b *pebble.Batch, sync bool, routes ...*Route) *write {
	return q.engine.submit(b, sync, func(k *book) { q.noteLocked(k, routes...) })
}

// noteLocked notes in a book what routes have, and users whose state has changed.
func (q *Queue) noteLocked(k *book, routes ...*Route) {
	for _, r := range routes {
		c := r.count
		c.head = r.headLocked()
		k.counters = setRow(k.counters, r.id, c)
	}
	for uid := range q.charged {
		k.users = setRow(k.users, uid, q.users[uid])
	}
	clear(q.charged)
}

// leave does not wait for what submitLocked has returned, but sees to it that
// it is applied. If the engine fails before, it is lost.
func (q *Queue) leave(w *write, err error) error {
	if w != nil && err == nil {
		q.engine.nudge()
	}
	return err
}

// await waits for what submitLocked has returned.
func (q *Queue) await(w *write, err error) error {
	if w == nil || err != nil {
		return err
	}
	return q.engine.await(w)
}

// openStages lists the stages of each route in the order of their last Put.
func (q *Queue) openStages() []*Stage {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.SortedFunc(maps.Values(q.stages), func(a, b *Stage) int {
		return cmp.Or(cmp.Compare(a.route.id, b.route.id), cmp.Compare(a.ticket, b.ticket))
	})
}
