package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestQueue_FlappingDisk lets writers and consumers work while the disk fails
// for some milliseconds again and again. Nothing that was stored is lost, each
// commit is carried out though it was never tried twice, and all ends by itself.
func TestQueue_FlappingDisk(t *testing.T) {
	mem := vfs.NewCrashableMem()
	broken := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.ENOSPC
		}
		return nil
	})}
	q, _, err := Open("store", testOptions(errorfs.Wrap(mem, broken)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Route("a")
	if err != nil {
		t.Fatal(err)
	}
	book := newLedger()
	stop, written := make(chan struct{}), new(atomic.Int64)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for !stopped(stop) {
				n := flappingWrite(t, r, book, i%2 == 0)
				written.Add(int64(n))
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	consumers := sync.WaitGroup{}
	for range 2 {
		consumers.Go(func() { flappingConsume(t, ctx, r, book) })
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
		broken.On()
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		broken.Off()
		n := written.Load()
		until(t, "writing resumes", func() bool { return written.Load() > n })
	}
	close(stop)
	within(t, "writers", func() error { wg.Wait(); return nil })
	left := func() string {
		s, err := r.Stats()
		if err == nil && s.Staged+s.Ready+s.Leased+s.Delayed == 0 {
			return ""
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		return fmt.Sprintf("%+v, %v, %d stages, cursor %d, behind %v, next %d", s, err, len(q.stages), r.cursor, r.behind, r.count.next)
	}
	for deadline := time.Now().Add(bound); left() != ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not all is delivered: %s", left())
		}
	}
	cancel()
	within(t, "consumers", func() error { consumers.Wait(); return nil })
	if err := book.check(q); err != nil {
		t.Error(err)
	}
	if err := within(t, "close", q.Close); err != nil {
		t.Error(err)
	}
	t.Logf("%d messages, %d parkings", written.Load(), q.parks)
	if written.Load() == 0 || q.parks < 5 {
		t.Error("the test does not test")
	}
}

func stopped(stop chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// flappingWrite writes a file, and returns the number of messages that are safe.
func flappingWrite(t *testing.T, r *Route, book *ledger, staged bool) int {
	ms := messages(NewFileID(), 2)
	book.know(messageIDs(ms)...)
	if !staged {
		if err := r.Append(ms); err != nil {
			return flappingError(t, err)
		}
		book.store(messageIDs(ms)...)
		return len(ms)
	}
	s := r.NewStage(NewFileID(), StageInfo{})
	err := putOne(s, 0, ms)
	if err == nil {
		book.store(messageIDs(ms)...)
	}
	if err := commitOne(s); err != nil {
		t.Errorf("commit: %v", err)
	}
	if err != nil {
		return flappingError(t, err)
	}
	return len(ms)
}

func flappingError(t *testing.T, err error) int {
	if !errors.Is(err, ErrFault) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write: %v", err)
	}
	time.Sleep(100 * time.Microsecond) // a writer with an error does not spin
	return 0
}

func flappingConsume(t *testing.T, ctx context.Context, r *Route, book *ledger) {
	for i := 0; ; i++ {
		leases, err := r.Lease(ctx, 5)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.Errorf("lease: %v", err)
			return
		}
		if i%5 == 0 {
			r.Requeue(leases...)
			continue
		}
		for _, l := range leases {
			book.release(l.ID)
		}
		if err := r.Ack(leases...); err != nil && !errors.Is(err, ErrFault) && !errors.Is(err, ErrNotLeased) {
			t.Errorf("ack: %v", err)
		}
	}
}
