package publisher

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"spoolfs/queue"
)

// TestPublisher_LargeMessages: what is in memory is bounded in bytes, too, however
// large the window and the messages are; and all of them get through.
func TestPublisher_LargeMessages(t *testing.T) {
	const n, large = 40, 1 << 20
	b := &broker{}
	verdicts := make(chan func(), n)
	b.on = func(s *scripted, p Publication) error {
		verdicts <- func() { s.say(Verdict{Tag: p.Tag, Outcome: Confirmed}) }
		return nil
	}
	r := newRigOn(t, vfs.NewMem(), b, Options{WindowBytes: 4 * large})
	for range n {
		m := queue.Message{ID: queue.NewFileID().MessageID(1), Line: 1, Ingested: time.Now(), Body: make([]byte, large)}
		if err := r.route.Append([]queue.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	most := uint64(0)
	r.until("an empty queue", func(q queue.Stats, p Stats) bool {
		most = max(most, q.Leased)
		// One verdict when there is no room for more: then all that can be
		// leased is.
		if w := r.p.window; w.isFull() || q.Ready == 0 {
			select {
			case say := <-verdicts:
				say()
			default:
			}
		}
		return p.ConfirmedTotal == n && p.InFlight == 0
	})
	// The window and a lease, each with a message that goes beyond it.
	if limit := uint64(4 + 16 + 2); most > limit || most < 4 {
		t.Errorf("%d MiB were leased at once, want at most %d", most, limit)
	}
	t.Logf("at most %d MiB", most)
}

func (w *window) isFull() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes >= w.mostBytes
}
