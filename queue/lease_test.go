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
