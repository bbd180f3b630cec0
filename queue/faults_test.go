package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// faultMode says which operations of the file system fail.
type faultMode struct {
	name   string
	writes bool // which operations count and fail
	reads  bool
	heal   time.Duration // all fail for so long; 0: one fails
	stride int           // try each stride-th operation in the ordinary run
}

// TestQueue_EveryFault makes each operation of the file system fail in turn
// during a run that does all that a queue does. It proves that Q1, Q2, Q3 and
// Q6 hold through a fault, that nothing waits for ever and that the queue goes
// on by itself.
func TestQueue_EveryFault(t *testing.T) {
	for _, mode := range []faultMode{
		{name: "write", writes: true, stride: 1},
		{name: "read", reads: true, stride: 1},
		{name: "writes-heal", writes: true, heal: 200 * time.Millisecond, stride: 7},
		{name: "all-heal", writes: true, reads: true, heal: 60 * time.Millisecond, stride: 19},
	} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			dry := runFaults(t, mode, 0)
			n, tried := 1, 0
			for ; n <= dry.disk.count; n += mode.step() {
				runFaults(t, mode, n)
				if tried++; t.Failed() {
					t.FailNow()
				}
			}
			t.Logf("%d operations, %d tried", dry.disk.count, tried)
		})
	}
}

func (m faultMode) step() int {
	if chaos() {
		return 1
	}
	return m.stride
}

// faultyDisk fails the n-th operation, and those of the time that follows.
type faultyDisk struct {
	mode faultMode
	n    int
	mem  *vfs.MemFS
	book *ledger

	mu    sync.Mutex
	count int
	op    errorfs.Op // the first that failed
	err   error      // what it failed with
	since time.Time
	crash *vfs.MemFS // the disk after a crash at that moment
	owed  *ledger    // what had been promised then
}

func (d *faultyDisk) String() string { return "faulty disk" }

func (d *faultyDisk) MaybeError(op errorfs.Op) error {
	write := op.Kind.ReadOrWrite() == errorfs.OpIsWrite
	if write && !d.mode.writes || !write && !d.mode.reads {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	if d.n == 0 || d.count < d.n || d.err != nil && time.Since(d.since) >= d.mode.heal {
		return nil
	}
	if d.err == nil {
		d.err, d.op, d.since = &os.PathError{Op: "injected", Path: op.Path, Err: syscall.EIO}, op, time.Now()
		if write {
			d.err = &os.PathError{Op: "injected", Path: op.Path, Err: syscall.ENOSPC}
		}
		d.owed = d.book.snapshot()
		d.crash = d.clone()
	}
	return d.err
}

func (d *faultyDisk) clone() *vfs.MemFS {
	rng := rand.New(rand.NewPCG(uint64(d.n), 0))
	return d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * rng.IntN(3), RNG: rng})
}

// failed returns the operation that has failed, if one has.
func (d *faultyDisk) failed() (errorfs.Op, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.op, d.err != nil
}

// expected reports whether err comes from the fault.
func (d *faultyDisk) expected(err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err != nil && errors.Is(err, d.err)
}

// fault checks what an error of the queue tells: a write that failed is an
// ErrFault and says why. (A Put that cuts may also meet a read that failed.)
func (d *faultyDisk) fault(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil || d.err == nil:
		return err
	case !errors.Is(err, d.err):
		return fmt.Errorf("does not tell the cause: %w", err)
	case !d.mode.reads && !(errors.Is(err, ErrFault) && errors.Is(err, syscall.ENOSPC)):
		return fmt.Errorf("is not ErrFault and ENOSPC: %w", err)
	}
	return nil
}

// runFaults runs the script with a fault at the n-th operation.
func runFaults(t *testing.T, mode faultMode, n int) *faultRun {
	mem, book := vfs.NewCrashableMem(), newLedger()
	r := &faultRun{
		t: t, book: book, opts: testOptions(nil),
		disk: &faultyDisk{mode: mode, n: n, mem: mem, book: book},
	}
	r.opts.FS = errorfs.Wrap(mem, r.disk)
	defer func() {
		if t.Failed() {
			op, _ := r.disk.failed()
			t.Logf("%s: operation %d was %+v", mode.name, n, op)
		}
	}()
	r.script()
	if _, failed := r.disk.failed(); failed { // the background may do less than before
		r.recover("at the fault", r.disk.crash, r.disk.owed)
	}
	return r
}

// recover opens a disk after a crash and checks that nothing is lost.
func (r *faultRun) recover(when string, disk *vfs.MemFS, owed *ledger) {
	r.t.Helper()
	after := &faultRun{t: r.t, book: owed, opts: testOptions(disk), disk: &faultyDisk{}}
	after.open()
	after.check("after a crash " + when)
	after.drain()
	after.close()
}
