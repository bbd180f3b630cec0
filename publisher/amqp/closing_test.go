package amqp

import (
	"testing"
	"time"

	"spoolfs/integration/rabbit"
	"spoolfs/publisher"
)

// TestSession_CloseAfterTheEnd: why a session has ended by itself is known also if
// it is closed before all of it is still.
func TestSession_CloseAfterTheEnd(t *testing.T) {
	r := newRelayWith(t, rabbit.RelayOptions{Delay: 100 * time.Millisecond})
	s := dial(t, Options{URL: r.URL()})
	publish(t, s, publication(newName(t), 1))
	wait(t, "the end of the channel", s.ch.IsClosed)
	s.Close() // while the goodbye is on its way
	wantErr(t, s.Err(), publisher.Lazy, "404")
}
