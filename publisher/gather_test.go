package publisher

import (
	"testing"
	"time"
)

// TestPublisher_Gathers: messages that come one after the other are sent together, some
// every gatherTime.
func TestPublisher_Gathers(t *testing.T) {
	b := &broker{}
	r := newRig(t, b, Options{})
	const messages = 300
	start := time.Now()
	for range messages {
		r.append(1)
	}
	r.untilEmpty()
	most := int64(time.Since(start)/gatherTime) + messages/fewLeases + 2
	if got := b.flushes.Load(); got > most {
		t.Errorf("%d messages were sent in %d parts, want at most %d", messages, got, most)
	}
}
