package publisher

import (
	"fmt"
	"testing"

	"spoolfs/queue"
)

// TestPublisher_Pause: a pause stops what is under way without a loss or a
// repeat, nothing is published before its end, and the end may come again.
func TestPublisher_Pause(t *testing.T) {
	b := &broker{}
	r := newRig(t, b, Options{})
	var want []queue.ID
	for range 3 {
		want = append(want, r.append(500)...)
		r.until("a session", func(_ queue.Stats, p Stats) bool { return p.State == Connected })
		r.p.Pause()
		r.p.Pause()
		r.until("paused and nothing in hand", func(q queue.Stats, p Stats) bool {
			return p.State == Paused && p.InFlight == 0 && q.Leased == 0
		})
		sent := b.ids()
		want = append(want, r.append(1)...)
		// Nobody else takes what is ready.
		leases, err := r.route.Lease(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		r.route.Requeue(leases...)
		if got := b.ids(); got != sent {
			t.Errorf("published while paused: %s after %s", got, sent)
		}
		r.p.Resume()
		r.p.Resume()
		r.untilEmpty()
	}
	if got := b.ids(); got != fmt.Sprint(want) {
		t.Errorf("published\n%s\nwant\n%s", got, want)
	}
}

// TestPublisher_PauseBeforeRunAndStop: a publisher that is paused from the start
// sends nothing, and stops all the same.
func TestPublisher_PauseBeforeRunAndStop(t *testing.T) {
	b := &broker{}
	r := newRig(t, b, Options{})
	r.p.Pause()
	r.append(1)
	r.until("paused", func(_ queue.Stats, p Stats) bool { return p.State == Paused })
	r.halt()
}
