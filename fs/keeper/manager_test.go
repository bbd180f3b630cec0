package keeper

import (
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestManager_DoesNotListen: K1. A service manager that reads nothing holds up
// nobody for long.
func TestManager_DoesNotListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ended := make(chan error, 1)
	go func() {
		m := &Manager{Socket: path}
		for {
			if err := m.Notify("WATCHDOG=1"); err != nil { // its queue is full
				ended <- err
				return
			}
		}
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, unix.EAGAIN) {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		conn.Close() // or the goroutine waits for ever
		t.Error("it was not given up within a minute")
	}
}
