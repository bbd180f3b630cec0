package queue

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// engine is one life of the database: from its opening until it is closed or
// has failed. Writes enter it in the order in which they were submitted; those
// that meet share a batch and a sync.
//
// When Pebble meets an error that it cannot go on from, it is stuck somewhere
// inside for good. The engine then answers everybody with the error, is fenced
// off from the disk, so that what is left of it cannot touch the files of its
// successor, and is abandoned.
type engine struct {
	db *pebble.DB

	// failed is closed when the database has failed; err says why.
	failed chan struct{}
	err    error
	fenced atomic.Bool

	// committing is held by the one who applies what is pending. It guards
	// unchecked, the bytes that were applied since makeRoom looked last.
	committing sync.Mutex
	unchecked  int

	mu      sync.Mutex // guards what follows, and the closing of failed
	onFault func(*engine)
	pending []*write
	closing bool
}

// write is a batch on its way to the disk.
type write struct {
	batch *pebble.Batch
	sync  bool

	// group is what it was applied with; nil before. Guarded by committing.
	group *group
}

// group is what is applied together. The first of its writes that needs the
// disk waits for it, and tells the others.
type group struct {
	batch  *pebble.Batch
	waiter *write
	synced chan struct{}
	err    error // of the sync
}

// openEngine opens the database in a directory. onFault is called once if it
// fails later, and must not wait.
func openEngine(dir string, opts *Options, onFault func(*engine)) (*engine, error) {
	e := &engine{failed: make(chan struct{})}
	var err error
	if e.db, err = openPebble(dir, e.pebbleOptions(opts)); err != nil {
		e.fenced.Store(true)
		return nil, err
	}
	e.mu.Lock()
	e.onFault = onFault
	e.mu.Unlock()
	if e.hasFailed() { // a flush at the opening, for example
		e.abandon()
		return nil, e.err
	}
	return e, nil
}

// openPebble opens the database, and turns a panic of pebbleLogger.Fatalf into
// an error.
func openPebble(dir string, opts *pebble.Options) (db *pebble.DB, err error) {
	defer recoverFatal(&err)
	return pebble.Open(dir, opts)
}

func (e *engine) pebbleOptions(opts *Options) *pebble.Options {
	return &pebble.Options{
		FS:                 unlockedFS{errorfs.Wrap(opts.FS, errorfs.InjectorFunc(e.fence))},
		Logger:             pebbleLogger{opts.Logger, e.fail},
		FormatMajorVersion: pebble.FormatNewest,
		MemTableSize:       memTableSize,
		CacheSize:          16 << 20,
		// Pebble holds up writers where they cannot be reached if the flush
		// that they wait for fails. makeRoom holds them up before that.
		MemTableStopWritesThreshold: 2 * maxUnflushed,
		L0StopWritesThreshold:       1000,
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { e.fail(fmt.Errorf("background: %w", err)) },
			// The reader gets an error, which is dealt with where it reads.
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				opts.Logger.Error("the store is damaged", "path", info.Path, "details", info.Details)
			},
		},
	}
}

// memTableSize is the size of a memory table in bytes, maxUnflushed how many of
// them may wait to be flushed.
const (
	memTableSize = 8 << 20
	maxUnflushed = 2
)

// fence keeps an engine that has failed from changing the disk.
func (e *engine) fence(op errorfs.Op) error {
	if e.fenced.Load() && op.Kind != errorfs.OpFileClose && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
		return errFenced
	}
	return nil
}

var errFenced = errors.New("the database has failed and is fenced off")

// unlockedFS leaves the locking to the queue, which holds the lock of the store
// over the lives of several engines.
type unlockedFS struct{ vfs.FS }

func (unlockedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (f unlockedFS) Unwrap() vfs.FS { return f.FS }

// fail ends the engine, if it has not ended yet.
func (e *engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing || e.hasFailed() {
		return
	}
	e.err = fmt.Errorf("%w: %w", ErrFault, err)
	close(e.failed)
	if e.onFault != nil {
		e.onFault(e)
	}
}

func (e *engine) hasFailed() bool {
	select {
	case <-e.failed:
		return true
	default:
		return false
	}
}

// submit hands over a batch. It never waits; the order of the calls is the
// order of the log.
func (e *engine) submit(b *pebble.Batch, sync bool) *write {
	w := &write{batch: b, sync: sync}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending = append(e.pending, w)
	return w
}

// await returns when a write is applied, and, with sync, on stable storage.
// When it returns an error, the batch may or may not be found after the next
// opening.
func (e *engine) await(w *write) error {
	g, err := e.applied(w)
	if err != nil || !w.sync {
		return err
	}
	if g.waiter == w {
		if g.err = g.batch.SyncWait(); g.err != nil {
			e.fail(fmt.Errorf("sync: %w", g.err))
		}
		close(g.synced)
	}
	select {
	case <-g.synced:
		if g.err != nil {
			return e.err
		}
		return nil
	case <-e.failed:
		return e.err
	}
}

// applied sees to it that a write is applied: by somebody who came before, or by
// the caller, with all that is pending.
func (e *engine) applied(w *write) (*group, error) {
	e.committing.Lock()
	if w.group == nil {
		e.drain()
	}
	g := w.group
	e.committing.Unlock()
	e.nudge() // for those that came meanwhile and did not wait
	if g == nil {
		return nil, e.err
	}
	return g, nil
}

// nudge applies what is pending, or leaves it to whoever is applying.
func (e *engine) nudge() {
	for e.hasPending() && e.committing.TryLock() {
		e.drain()
		e.committing.Unlock()
	}
}

func (e *engine) hasPending() bool {
	if e.hasFailed() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.pending) > 0
}

// drain applies what is pending as one group. The caller holds committing.
func (e *engine) drain() {
	if e.makeRoom() != nil {
		return
	}
	e.mu.Lock()
	writes := e.pending
	e.pending = nil
	e.mu.Unlock()
	if len(writes) == 0 {
		return
	}
	if err := e.commit(writes); err != nil {
		e.fail(fmt.Errorf("commit: %w", err))
	}
}

// makeRoom waits while too much waits to be flushed. As the question is not
// cheap, it is asked once for each half of a memory table.
func (e *engine) makeRoom() error {
	for {
		if e.hasFailed() {
			return e.err
		}
		if e.unchecked < memTableSize/2 {
			return nil
		}
		if e.db.Metrics().MemTable.Size <= maxUnflushed*memTableSize {
			e.unchecked = 0
			return nil
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-e.failed:
		}
	}
}

// commit applies writes as one group.
func (e *engine) commit(writes []*write) error {
	g := &group{batch: writes[0].batch, synced: make(chan struct{})}
	if len(writes) > 1 {
		g.batch = e.db.NewBatch()
	}
	for _, w := range writes {
		if w.batch != g.batch {
			if err := g.batch.Apply(w.batch, nil); err != nil {
				return err
			}
		}
		if w.sync && g.waiter == nil {
			g.waiter = w
		}
	}
	e.unchecked += g.batch.Len()
	if err := e.apply(g); err != nil {
		return err
	}
	for _, w := range writes {
		w.group = g
	}
	return nil
}

func (e *engine) apply(g *group) (err error) {
	defer recoverFatal(&err)
	if g.waiter == nil {
		return e.db.Apply(g.batch, pebble.NoSync)
	}
	return e.db.ApplyNoSyncWait(g.batch, pebble.Sync)
}

// close ends an engine in good health and closes the database. It may be called
// twice.
func (e *engine) close() (err error) {
	e.mu.Lock()
	closed := e.closing
	e.closing = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	if e.hasFailed() {
		e.abandon()
		return nil // it has been reported
	}
	defer recoverFatal(&err)
	return e.db.Close()
}

// abandonTimeout is how long a failed database gets to close by itself.
const abandonTimeout = 2 * time.Second

// abandon fences off a failed engine and closes as much of it as will close.
// What is stuck inside Pebble stays, with its memory, until the process ends.
func (e *engine) abandon() {
	if e.fenced.Swap(true) {
		return
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		defer func() { _ = recover() }() // whatever is broken in there
		_ = e.db.Close()
	}()
	select {
	case <-closed:
	case <-time.After(abandonTimeout):
	}
}

// ours reports whether a function of this package that deals with the panics of
// pebbleLogger.Fatalf is among the callers.
func ours() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		switch f.Function {
		case "spoolfs/queue.(*engine).apply", "spoolfs/queue.(*engine).close",
			"spoolfs/queue.openPebble", "spoolfs/queue.(*Queue).eachRow":
			return true
		}
		if !more {
			return false
		}
	}
}
