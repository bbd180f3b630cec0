package amqp

import (
	"net"
	"testing"

	"spoolfs/integration/rabbit"
)

// newRelay makes a relay before the node.
func newRelay(tb testing.TB) *rabbit.Relay {
	tb.Helper()
	return newRelayWith(tb, rabbit.RelayOptions{})
}

func newRelayOn(tb testing.TB, l net.Listener) *rabbit.Relay {
	tb.Helper()
	return newRelayWith(tb, rabbit.RelayOptions{Listener: l})
}

func newRelayWith(tb testing.TB, opts rabbit.RelayOptions) *rabbit.Relay {
	tb.Helper()
	r, err := rabbit.NewRelay(node.URL(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close() })
	return r
}
