package publisher

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"spoolfs/queue"
)

// TestRun_LeasesThatHaveEnded: a batch of verdicts of which some are of leases
// that ended when the store was opened again: the others are settled all the
// same, none stays leased, and the session goes on (P6).
func TestRun_LeasesThatHaveEnded(t *testing.T) {
	r := newRig(t, &broker{}, Options{})
	r.halt()
	r.append(6)
	leases, err := r.route.Lease(t.Context(), 6)
	if err != nil || len(leases) != 6 {
		t.Fatalf("%d leases, %v", len(leases), err)
	}
	run := newRun(r.p, &scripted{})
	var batch []Verdict
	for i, l := range leases {
		outcome := Confirmed
		if i >= 4 {
			outcome = Rejected
		}
		batch = append(batch, Verdict{Tag: run.takeOff(l), Outcome: outcome})
	}
	r.route.Requeue(leases[1], leases[5])
	if err := run.settleAll(batch); err != nil {
		t.Errorf("settle: %v", err)
	}
	if q, err := r.route.Stats(); err != nil || q.Leased != 0 || q.Ready != 2 || q.Delayed != 1 {
		t.Errorf("after the verdicts: %+v, %v", q, err)
	}
}

// TestPublisher_FlappingStore: a disk that fails again and again under a
// publisher ends neither Run nor a message, leaves none leased, and costs
// repeats only with the same id (P1, P6).
func TestPublisher_FlappingStore(t *testing.T) {
	broken := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.ENOSPC
		}
		return nil
	})}
	b := &broker{}
	r := newRigOn(t, errorfs.Wrap(vfs.NewMem(), broken), b, Options{
		Window: 32, TTL: time.Hour, RetryMax: 4 * time.Millisecond,
	})
	want := map[queue.ID]bool{}
	for range 10 {
		for i := range 100 {
			if i == 50 {
				broken.On()
			}
			old := i%4 == 3
			id := r.appendOne(old)
			if id == "" {
				break // the store has met it
			}
			want[id] = !old
		}
		broken.Off()
		r.until("a store that takes messages", func(queue.Stats, Stats) bool {
			id := r.appendOne(false)
			want[id] = true
			return id != ""
		})
	}
	r.until("an empty queue", func(q queue.Stats, p Stats) bool {
		if len(r.done) > 0 {
			t.Fatalf("Run has returned: %v", <-r.done)
		}
		return q.Ready+q.Leased+q.Delayed == 0 && p.InFlight == 0
	})
	delete(want, "")
	sent := map[queue.ID]bool{}
	for _, id := range b.published {
		sent[id] = true
	}
	for id, fresh := range want {
		if fresh != sent[id] {
			t.Errorf("message %s was sent: %t, want %t", id, sent[id], fresh)
		}
	}
	t.Logf("%d messages, %d published, %+v", len(want), len(b.published), r.p.Stats())
}

// appendOne stores a message, that has expired if old is set. It returns no ID if
// the store took none.
func (r *rig) appendOne(old bool) queue.ID {
	r.t.Helper()
	m := queue.Message{ID: queue.NewFileID().MessageID(1), Line: 1, Ingested: time.Now()}
	if old {
		m.Ingested = time.Now().Add(-2 * time.Hour)
	}
	err := r.route.Append([]queue.Message{m})
	if err != nil {
		if !errors.Is(err, queue.ErrFault) {
			r.t.Fatal(err)
		}
		return ""
	}
	return m.ID
}
