package queue

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The tests of this file guard what a message costs by counting, so that they say
// the same on every machine.

// countingFS counts the bytes that are written, and lets a sync of the log wait.
type countingFS struct {
	vfs.FS
	written atomic.Int64
	gate    atomic.Pointer[func()] // called before each sync of a log, if set
}

var _ vfs.FS = (*countingFS)(nil)

func (f *countingFS) Unwrap() vfs.FS { return f.FS }

func (f *countingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.counted(f.FS.Create(name, c))
}

func (f *countingFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.counted(f.FS.ReuseForWrite(from, to, c))
}

func (f *countingFS) counted(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &countedFile{file, f}, nil
}

type countedFile struct {
	vfs.File
	fs *countingFS
}

var _ vfs.File = (*countedFile)(nil)

func (f *countedFile) Write(b []byte) (int, error) {
	f.fs.written.Add(int64(len(b)))
	return f.File.Write(b)
}

func (f *countedFile) wait() {
	if gate := f.fs.gate.Load(); gate != nil {
		(*gate)()
	}
}

func (f *countedFile) Sync() error { f.wait(); return f.File.Sync() }

func (f *countedFile) SyncData() error { f.wait(); return f.File.SyncData() }

func (f *countedFile) SyncTo(n int64) (bool, error) { f.wait(); return f.File.SyncTo(n) }

// waiting is how many writes are in the group that is to be applied next.
func (e *engine) waiting() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending == nil {
		return 0
	}
	return len(e.pending.batches)
}

// TestGuard_SyncsOfOneWriter: a file of a writer that is alone costs one sync.
func TestGuard_SyncsOfOneWriter(t *testing.T) {
	q, r := openQueue(t, Options{})
	bodies := corpusBodies(t)
	before := q.Store().Syncs.Count()
	const files = 50
	for i := range files {
		if err := stageOne(r, bodies[i]); err != nil {
			t.Fatal(err)
		}
	}
	if got := q.Store().Syncs.Count() - before; got != files {
		t.Errorf("%d syncs for %d files", got, files)
	}
}

// TestGuard_SyncsAreShared: 32 writers that come while the disk is at work share
// one sync.
func TestGuard_SyncsAreShared(t *testing.T) {
	const writers = 32
	fs := &countingFS{FS: vfs.Default}
	q, r := openQueue(t, Options{FS: fs})
	bodies := corpusBodies(t)
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	gate := func() {
		once.Do(func() { close(held) })
		<-release
	}
	before := q.Store().Syncs.Count()
	fs.gate.Store(&gate)
	var all sync.WaitGroup
	put := func(i int) {
		if err := stageOne(r, bodies[i]); err != nil {
			t.Error(err)
		}
	}
	all.Go(func() { put(writers) })
	<-held
	for i := range writers {
		all.Go(func() { put(i) })
	}
	deadline := time.Now().Add(time.Minute)
	for q.engine.waiting() < writers && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	fs.gate.Store(nil)
	close(release)
	all.Wait()
	if got := q.Store().Syncs.Count() - before; got != 2 {
		t.Errorf("%d syncs for one writer, and %d that came during its sync, want 2", got, writers)
	}
}

// TestGuard_BytesWritten: what a file with a message writes to the disk until it is
// ready, per byte of the message.
func TestGuard_BytesWritten(t *testing.T) {
	fs := &countingFS{FS: vfs.NewMem()}
	_, r := openQueue(t, Options{FS: fs})
	body := make([]byte, 420)
	const files = 1000
	before := fs.written.Load()
	for range files {
		if err := stageOne(r, body); err != nil {
			t.Fatal(err)
		}
	}
	per := float64(fs.written.Load()-before) / (files * 420)
	t.Logf("%.3f bytes written per byte of payload", per)
	if per > 2.2 {
		t.Errorf("%.3f bytes written per byte of payload, want at most 2.2", per)
	}
}

// TestGuard_Allocations: how often a file with a message allocates on its way
// through the queue, and a message when it is leased and acknowledged.
func TestGuard_Allocations(t *testing.T) {
	_, r := openQueue(t, Options{FS: vfs.NewMem()})
	body := corpusBodies(t)[0]
	put := testing.AllocsPerRun(500, func() {
		if err := stageOne(r, body); err != nil {
			t.Fatal(err)
		}
	})
	fill(t, r, 2000)
	drained := testing.AllocsPerRun(10, func() { drain(t, r, 100) }) / 100
	t.Logf("%.1f allocations a file, %.1f a message that leaves", put, drained)
	if put > 50 {
		t.Errorf("%.1f allocations a file, want at most 50", put)
	}
	if drained > 10 {
		t.Errorf("%.1f allocations for the lease and the ack of a message, want at most 10", drained)
	}
}
