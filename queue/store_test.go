package queue

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// hangingDisk is a disk of which no sync ends while it hangs.
type hangingDisk struct {
	hangs  atomic.Bool
	waits  chan struct{} // holds a token when a sync waits
	answer chan struct{} // closed when it goes on
}

var _ errorfs.Injector = (*hangingDisk)(nil)

func (d *hangingDisk) String() string { return "hanging disk" }

// MaybeError is part of errorfs.Injector.
func (d *hangingDisk) MaybeError(op errorfs.Op) error {
	sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
	if sync && d.hangs.Load() {
		select {
		case d.waits <- struct{}{}:
		default:
		}
		<-d.answer
	}
	return nil
}

// TestQueue_Probe: a probe waits for the disk, and its sync counts; a store that says
// why it cannot write answers as well.
func TestQueue_Probe(t *testing.T) {
	disk := &hangingDisk{waits: make(chan struct{}, 1), answer: make(chan struct{})}
	q, r := openQueue(t, Options{FS: errorfs.Wrap(vfs.NewMem(), disk)})
	before := q.Store().Syncs.Count()
	if err := q.Probe(); err != nil {
		t.Fatal(err)
	}
	if n := q.Store().Syncs.Count(); n != before+1 {
		t.Errorf("%d syncs after %d", n, before)
	}
	want, err := r.Stats()
	if err != nil {
		t.Fatal(err)
	}
	disk.hangs.Store(true)
	done := make(chan error, 1)
	go func() { done <- q.Probe() }()
	<-disk.waits
	select {
	case err := <-done:
		t.Errorf("the disk hangs, and the probe ends with %v", err)
	default:
	}
	disk.hangs.Store(false)
	close(disk.answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, err := r.Stats(); err != nil || got != want {
		t.Errorf("the probe has made %+v of %+v (%v)", got, want, err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if err := q.Probe(); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed queue: %v", err)
	}
}

// TestQueue_Store: it says why nothing is taken.
func TestQueue_Store(t *testing.T) {
	q, r := openQueue(t, Options{Limits: Limits{Messages: 1, Bytes: 1 << 20}})
	s := q.Store()
	if s.Refusal != nil || s.LimitBytes != 1<<20 || s.DiskBytes == 0 || s.DiskFreeBytes == 0 {
		t.Errorf("an empty store is %+v", s)
	}
	if err := r.Append([]Message{{ID: "a", Body: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if s := q.Store(); !errors.Is(s.Refusal, ErrFull) || s.Syncs.Count() == 0 {
		t.Errorf("a full store is %+v", s)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if s := q.Store(); !errors.Is(s.Refusal, ErrClosed) {
		t.Errorf("a closed store is %+v", s)
	}
}
