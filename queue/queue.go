package queue

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Queue is an open store. Its methods may be called from any goroutine.
type Queue struct {
	dir  string
	opts Options
	lock *pebble.Lock
	db   *pebble.DB

	// done is closed when the queue closes or fails, and wakes who waits.
	done   chan struct{}
	active sync.WaitGroup // operations under way

	mu     sync.Mutex // see Locks in doc.go
	routes map[string]*Route
	stages map[FileID]*Stage
	stop   error // ErrClosed or an ErrFault once done is closed
	closed bool
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
	q := &Queue{
		dir: dir, opts: opts, done: make(chan struct{}),
		routes: map[string]*Route{}, stages: map[FileID]*Stage{},
	}
	if err := q.open(exists); err != nil {
		return nil, nil, fmt.Errorf("open store %q: %w", dir, err)
	}
	return q, q.openStages(), nil
}

func (q *Queue) open(exists bool) (err error) {
	database := q.opts.FS.PathJoin(q.dir, databaseDir)
	if err := q.opts.FS.MkdirAll(database, 0o700); err != nil {
		return err
	}
	if q.lock, err = lockStore(q.opts.FS, database, q.opts.LockTimeout); err != nil {
		return err
	}
	if !exists {
		err = writeFormat(q.opts.FS, q.dir)
	}
	if err == nil {
		q.db, err = pebble.Open(database, q.pebbleOptionsFor(q.lock))
	}
	if err == nil {
		err = q.load()
	}
	if err != nil {
		err = errors.Join(err, q.closeStore())
	}
	return err
}

// lockStore takes the lock of the database. A process that was killed holds it
// until the kernel has taken it apart, so it waits a little.
func lockStore(fsys vfs.FS, database string, timeout time.Duration) (*pebble.Lock, error) {
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		lock, err := pebble.LockDirectory(database, fsys)
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

func (q *Queue) pebbleOptionsFor(lock *pebble.Lock) *pebble.Options {
	return &pebble.Options{
		FS:                 q.opts.FS,
		Lock:               lock,
		Logger:             pebbleLogger{q.opts.Logger},
		FormatMajorVersion: pebble.FormatNewest,
		MemTableSize:       16 << 20,
		CacheSize:          16 << 20,
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
	q.haltLocked(ErrClosed)
	q.mu.Unlock()
	q.active.Wait()
	return q.closeStore()
}

func (q *Queue) closeStore() error {
	var err error
	if q.db != nil {
		err = q.closeDatabase()
	}
	if q.lock != nil {
		err = errors.Join(err, q.lock.Close())
	}
	return err
}

// closeDatabase closes Pebble, which panics if it has failed before.
func (q *Queue) closeDatabase() (err error) {
	defer recoverFatal(&err)
	return q.db.Close()
}

// begin enters an operation that uses the database; end leaves it.
func (q *Queue) begin() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stop != nil {
		return q.stop
	}
	q.active.Add(1)
	return nil
}

func (q *Queue) end() { q.active.Done() }

// haltLocked makes all further operations fail with reason.
func (q *Queue) haltLocked(reason error) {
	if q.stop == nil {
		q.stop = reason
		close(q.done)
	}
}

// applyLocked writes a batch and the counters of its route. With sync the
// caller must wait for Batch.SyncWait once it has let go of q.mu: the order of
// the log is then the order of the calls, and the wait is shared.
func (q *Queue) applyLocked(b *pebble.Batch, r *Route, sync bool) error {
	if q.stop != nil {
		return q.stop
	}
	r.count.head = r.headLocked()
	err := b.Set(routeKey(kindCounters, r.id), r.count.encode(), nil)
	if err == nil {
		err = q.commit(b, sync)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrFault, err)
		q.haltLocked(err)
	}
	return err
}

func (q *Queue) commit(b *pebble.Batch, sync bool) (err error) {
	defer recoverFatal(&err)
	if sync {
		return q.db.ApplyNoSyncWait(b, pebble.Sync)
	}
	return q.db.Apply(b, pebble.NoSync)
}

// waitSync waits until a batch that was applied with sync is on stable storage.
func (q *Queue) waitSync(b *pebble.Batch) error {
	err := b.SyncWait()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w: sync: %w", ErrFault, err)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.haltLocked(err)
	return err
}

// recoverFatal turns the panic of pebbleLogger.Fatalf into an error.
func recoverFatal(err *error) {
	switch p := recover().(type) {
	case nil:
	case pebbleFatal:
		*err = errors.Join(*err, errors.New(p.reason))
	default:
		panic(p)
	}
}

// openStages lists the stages of each route in the order of their last Put.
func (q *Queue) openStages() []*Stage {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.SortedFunc(maps.Values(q.stages), func(a, b *Stage) int {
		return cmp.Or(cmp.Compare(a.route.id, b.route.id), cmp.Compare(a.ticket, b.ticket))
	})
}
