package keeper

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestControl_Sizes: a message of any size comes as it was sent, such as a
// configuration with thousands of routes; one that is too large is refused, and the
// next ones come.
func TestControl_Sizes(t *testing.T) {
	ours, fd, err := controlPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	theirs, err := NewControl(fd)
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{0, 1, maxPacket - 100, maxPacket, maxPacket + 1, 3 * maxPacket, 5 << 20, 7}
	sent := make(chan error, len(sizes))
	go func() {
		for _, n := range sizes {
			text, err := json.Marshal(strings.Repeat("x", n))
			if err == nil {
				err = theirs.Send(Message{Kind: KindReady, Config: text})
			}
			sent <- err
		}
		text, _ := json.Marshal(strings.Repeat("x", maxMessage))
		if err := theirs.Send(Message{Kind: KindReady, Config: text}); err == nil {
			t.Error("a message that is too large was sent")
		}
		theirs.Close()
	}()
	for _, n := range sizes {
		m, err := ours.Receive()
		if err != nil {
			t.Fatalf("a message of %d bytes: %v", n, err)
		}
		if got := len(m.Config); m.Kind != KindReady || got != n+2 {
			t.Errorf("%q of %d bytes, want %d", m.Kind, got, n+2)
		}
		if err := <-sent; err != nil {
			t.Errorf("send %d bytes: %v", n, err)
		}
	}
	if _, err := ours.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}
