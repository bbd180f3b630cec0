package queue

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestRoute_LeaseOutlastsFailingReads: a disk that does not give what it has for a
// while is waited for, and the publisher does not get to see that.
func TestRoute_LeaseOutlastsFailingReads(t *testing.T) {
	fs := vfs.NewMem()
	q, _, err := Open("store", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	if err := r.Append(messages(NewFileID(), n)); err != nil {
		t.Fatal(err)
	}
	if err := q.engine.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}

	var open atomic.Bool // the failing begins when the queue is open
	var failed atomic.Int64
	const failures = 4
	failing := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if open.Load() && op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, ".sst") && failed.Add(1) <= failures {
			return errorfs.ErrInjected
		}
		return nil
	})
	if q, _, err = Open("store", testOptions(errorfs.Wrap(fs, failing))); err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if r, err = q.Route("default"); err != nil {
		t.Fatal(err)
	}
	open.Store(true)
	if got := leaseAll(t, r, n); len(got) != n {
		t.Errorf("leased %d, want %d", len(got), n)
	}
	if failed.Load() <= failures {
		t.Errorf("%d reads have failed, want %d", failed.Load(), failures)
	}
}

// TestRoute_LeaseIsBounded: what is leased at once is bounded in bytes, too, and
// what is left goes out next, in order, whether it was leased before or not.
func TestRoute_LeaseIsBounded(t *testing.T) {
	q, _, err := Open("store", testOptions(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	const n, large = 60, 1 << 20
	ms := messages(NewFileID(), n)
	for i := range ms {
		if i%10 != 0 { // small ones between them
			ms[i].Body = make([]byte, large)
		}
	}
	if err := r.Append(ms); err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{true, false} {
		var all []*Lease
		for len(all) < n {
			leases, err := r.Lease(t.Context(), 256)
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			for _, l := range leases {
				size += len(l.Body)
			}
			if size > leaseBytes+large {
				t.Errorf("%d bytes in one lease", size)
			}
			all = append(all, leases...)
		}
		for i, l := range all {
			if l.ID != ms[i].ID {
				t.Fatalf("message %d is %s, want %s", i, l.ID, ms[i].ID)
			}
		}
		if s, err := r.Stats(); err != nil || s.Leased != n || s.Ready != 0 {
			t.Errorf("stats are %+v, %v", s, err)
		}
		if again {
			// With a hole, so that it is more than one span.
			r.Requeue(all[:30]...)
			r.Requeue(all[31:]...)
			r.Requeue(all[30])
		} else if err := r.Ack(all...); err != nil {
			t.Error(err)
		}
	}
	if s, err := r.Stats(); err != nil || s.Leased+s.Ready != 0 {
		t.Errorf("stats are %+v, %v", s, err)
	}
}
