package queue

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// engine is one life of the database: from its opening until it is closed or
// has failed. Writes enter it in the order in which they were submitted; those
// that meet share a batch and a sync.
//
// When the disk or Pebble fails, the engine answers everybody with the error and
// is fenced off from the disk (engineFS), so that what is left of it cannot
// touch the files of its successor, and is closed.
type engine struct {
	db *pebble.DB

	// patience is how long a read is tried that the disk refuses.
	patience time.Duration

	// syncs counts how long the disk takes.
	syncs *Durations

	// failed is closed when the database has failed; err says why.
	failed chan struct{}
	err    error

	// committing is held by the one who applies what is pending, and who alone
	// changes unchecked, the bytes that were applied since makeRoom looked last.
	committing sync.Mutex
	unchecked  atomic.Int64

	// syncing holds a token while a group is on its way to the disk. What comes
	// meanwhile becomes one group, with one bookkeeping and one sync: with 64
	// writers eight times fewer of both than if each were applied at once.
	syncing chan struct{}

	mu      sync.Mutex // guards what follows, and the closing of failed
	onFault func()
	pending *group   // what is applied next; nil if there is nothing
	due     []*group // what drive is to bring to the disk
	driven  *group   // what it is bringing there
	closing bool
}

// write is a batch on its way to the disk.
type write struct {
	group *group
	sync  bool
}

// group is what is applied together. The first of its writes that waits for the disk
// brings it there, and tells the others; if all only want to be told, drive does.
type group struct {
	batches []*pebble.Batch
	book    book
	sync    bool
	waiter  *write
	then    []func(error) // to be told, once
	ending  sync.Once
	synced  chan struct{}
	err     error // of the sync

	// batch is what was applied; nil before. Guarded by committing.
	batch *pebble.Batch
}

// openEngine opens the database in a directory. onFault is called once if it
// fails later, and must not wait.
func openEngine(dir string, opts *Options, onFault func()) (*engine, error) {
	e := &engine{
		failed: make(chan struct{}), syncing: make(chan struct{}, 1),
		patience: opts.mediumPatience, syncs: opts.syncs,
	}
	fs, err := newEngineFS(opts.FS, dir, e)
	if err != nil {
		return nil, err
	}
	if e.db, err = openPebble(dir, e.pebbleOptions(fs, opts)); err != nil {
		if e.hasFailed() {
			return nil, e.err // what Pebble made of an error of the disk
		}
		e.fail(err) // what is left of it touches nothing
		return nil, err
	}
	e.mu.Lock()
	e.onFault = onFault
	e.mu.Unlock()
	if e.hasFailed() {
		_ = e.close()
		return nil, e.err
	}
	return e, nil
}

// openPebble opens the database, and turns a panic into an error.
func openPebble(dir string, opts *pebble.Options) (db *pebble.DB, err error) {
	err = guarded(func() error {
		db, err = pebble.Open(dir, opts)
		return err
	})
	return db, err
}

func (e *engine) pebbleOptions(fs *engineFS, opts *Options) *pebble.Options {
	o := &pebble.Options{
		FS:                 fs,
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
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				opts.Logger.Error("the store is damaged", "path", info.Path, "details", info.Details)
				e.fail(fmt.Errorf("%w: %s: %v", errDamaged, info.Path, info.Details))
			},
		},
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockSize
	}
	return o
}

// blockSize is the size of the blocks of tables in bytes. Rows are read in long
// runs: with the usual 4 KiB a message of a long backlog took a third more time
// than one of a short backlog, and 0.46 bytes on disk a byte instead of 0.33.
// Larger ones would lose more rows where one goes bad.
const blockSize = 32 << 10

// memTableSize is the size of a memory table in bytes, maxUnflushed how many of
// them may wait to be flushed.
const (
	memTableSize = 8 << 20
	maxUnflushed = 2
)

// fail ends the engine, if it has not failed yet.
func (e *engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hasFailed() {
		return
	}
	e.err = fmt.Errorf("%w: %w", ErrFault, err)
	close(e.failed)
	if e.driven != nil {
		e.due = append(e.due, e.driven) // whoever drives may never come back
	}
	for _, g := range e.due {
		go g.end(e.err)
	}
	e.due = nil
	if e.onFault != nil && !e.closing {
		e.onFault()
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

// submit hands over a batch, which the engine owns from then on, with what
// update does to the bookkeeping. It never waits; the order of the calls is the
// order of the log. Who submits with sync must await.
func (e *engine) submit(b *pebble.Batch, sync bool, update func(*book)) *write {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := &write{group: e.joinLocked(b, update), sync: sync}
	if sync {
		w.group.sync = true
		if w.group.waiter == nil {
			w.group.waiter = w
		}
	}
	return w
}

// submitThen is submit for who does not wait: then is called, in a goroutine that it
// must not hold up, with what await would have returned. Somebody must call drive.
func (e *engine) submitThen(b *pebble.Batch, update func(*book), then func(error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hasFailed() {
		go then(e.err)
		return
	}
	g := e.joinLocked(b, update)
	g.sync, g.then = true, append(g.then, then)
	if len(g.then) == 1 {
		e.due = append(e.due, g)
	}
}

// joinLocked makes a batch a part of what is applied next.
func (e *engine) joinLocked(b *pebble.Batch, update func(*book)) *group {
	if e.pending == nil {
		e.pending = &group{synced: make(chan struct{})}
	}
	g := e.pending
	g.batches = append(g.batches, b)
	if update != nil {
		update(&g.book)
	}
	return g
}

// await returns when a write is applied, and, with sync, on stable storage.
// When it returns an error, the batch may or may not be found after the next
// opening.
func (e *engine) await(w *write) error {
	g := w.group
	switch {
	case !w.sync:
		return e.awaitApplied(g)
	case g.waiter == w:
		return e.sync(g)
	}
	select {
	case <-g.synced:
		return g.err
	case <-e.failed:
		return e.err
	}
}

// sync brings a group to stable storage, after those before it.
func (e *engine) sync(g *group) error {
	select {
	case e.syncing <- struct{}{}:
	case <-e.failed:
		return e.err
	}
	err := e.bring(g)
	<-e.syncing
	if e.isToDrive() {
		go e.drive(func() {})
	}
	return err
}

// bring is sync for who holds syncing.
func (e *engine) bring(g *group) error {
	select {
	case <-g.synced: // somebody else has
		return g.err
	default:
	}
	if err := e.awaitApplied(g); err != nil {
		return err
	}
	start := time.Now()
	err := g.batch.SyncWait()
	if err != nil {
		e.fail(fmt.Errorf("sync: %w", err))
	} else {
		e.syncs.Observe(time.Since(start))
		_ = g.batch.Close() // its memory is used again
	}
	if e.hasFailed() { // or engineFS has made the sync a success
		err = e.err
	}
	g.end(err)
	return g.err
}

// end says how the group has ended, to all who want to know. Only the first call counts.
func (g *group) end(err error) {
	g.ending.Do(func() {
		g.err = err
		close(g.synced)
		for _, then := range g.then {
			then(err)
		}
	})
}

// drive brings to the disk what nobody waits for who would do it, until there is no
// more of that or somebody else has begun to bring something there: he looks again
// when he has. Before it waits it calls begins, each time.
func (e *engine) drive(begins func()) {
	for e.isToDrive() {
		select {
		case e.syncing <- struct{}{}:
		default:
			return
		}
		if g := e.toDrive(); g != nil {
			begins()
			_ = e.bring(g) // which tells those who want to know
		}
		<-e.syncing
	}
}

// isToDrive reports whether there is something for drive.
func (e *engine) isToDrive() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.due) > 0
}

// toDrive takes what comes next for drive.
func (e *engine) toDrive() *group {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.driven = nil
	if len(e.due) > 0 {
		e.driven = e.due[0]
		e.due = slices.Delete(e.due, 0, 1)
	}
	return e.driven
}

// awaitApplied sees to it that a group is applied: by somebody who came before,
// or by the caller.
func (e *engine) awaitApplied(g *group) error {
	e.committing.Lock()
	if g.batch == nil {
		e.drain()
	}
	applied := g.batch != nil
	e.committing.Unlock()
	e.nudge() // for those that came meanwhile and did not wait
	if !applied {
		return e.err
	}
	return nil
}

// nudge applies what is pending if nobody waits for it, or leaves it to whoever is
// applying. A group with a waiter is left to that one: it is to grow until the
// group before it is on the disk.
func (e *engine) nudge() {
	for e.isLeft() && e.committing.TryLock() {
		e.drain()
		e.committing.Unlock()
	}
}

// isLeft reports whether something is pending that nobody has to wait for.
func (e *engine) isLeft() bool {
	if e.hasFailed() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pending != nil && !e.pending.sync
}

// drain applies what is pending. The caller holds committing.
func (e *engine) drain() {
	if e.makeRoom() != nil {
		return
	}
	e.mu.Lock()
	g := e.pending
	e.pending = nil
	e.mu.Unlock()
	if g == nil {
		return
	}
	if err := e.commit(g); err != nil {
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
		if e.isRoomy() {
			return nil
		}
		if e.db.Metrics().MemTable.Size <= maxUnflushed*memTableSize {
			e.unchecked.Store(0)
			return nil
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-e.failed:
		}
	}
}

// isRoomy reports whether makeRoom need not even ask.
func (e *engine) isRoomy() bool { return e.unchecked.Load() < memTableSize/2 }

// commit applies a group as one batch.
func (e *engine) commit(g *group) error {
	batch := g.batches[0]
	if len(g.batches) > 1 {
		batch = e.db.NewBatchWithSize(g.size())
		for _, b := range g.batches {
			if err := batch.Apply(b, nil); err != nil {
				return err
			}
			_ = b.Close() // its memory is used again
		}
	}
	if err := g.book.write(batch); err != nil {
		return err
	}
	e.unchecked.Add(int64(batch.Len()))
	if err := e.apply(batch, g.sync); err != nil {
		return err
	}
	g.batch, g.batches = batch, nil
	return nil
}

// size is about how large a group is, in bytes.
func (g *group) size() int {
	size := 512 // for the book
	for _, b := range g.batches {
		size += b.Len()
	}
	return size
}

// apply makes a batch part of the memory table, and with sync begins to write it
// to the disk.
func (e *engine) apply(b *pebble.Batch, sync bool) error {
	return answered(func() error {
		if sync {
			return e.db.ApplyNoSyncWait(b, pebble.Sync)
		}
		return e.db.Apply(b, pebble.NoSync)
	})
}

// pause waits, and reports whether the engine is still in use then.
func (e *engine) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.failed:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.closing && !e.hasFailed()
}

// closeTimeout is how long a failed database gets to close.
const closeTimeout = 2 * time.Second

// close closes the database. It may be called twice. After a failure of the disk
// Pebble closes like any other; after one of its own it may be stuck, and what
// is stuck stays, with its memory, until the process ends.
func (e *engine) close() error {
	e.mu.Lock()
	closed := e.closing
	e.closing = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	reported := e.hasFailed()
	done := make(chan error, 1)
	go func() { done <- e.closePebble() }()
	var err error
	select {
	case err = <-done:
	case <-e.failed:
		select {
		case <-done:
		case <-time.After(closeTimeout):
		}
		err = e.err
	}
	if reported {
		return nil
	}
	if err == nil && e.hasFailed() {
		return e.err
	}
	return err
}

// closePebble is close without a bound.
func (e *engine) closePebble() error { return answered(e.db.Close) }
