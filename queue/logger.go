package queue

import (
	"fmt"
	"log/slog"
)

// pebbleLogger passes what Pebble says to slog. Pebble calls Fatalf where it
// cannot go on, such as a commit on a full disk. Its own logger ends the process
// there, and one that returned would be worse: the synced write would return
// nil and be gone after the next start (measured). So Fatalf panics, and
// Queue.applyLocked turns the panic of its own goroutine into ErrFault. In a
// goroutine of Pebble's the panic ends the process, and what was put is safe.
type pebbleLogger struct{ log *slog.Logger }

// pebbleFatal is the value of that panic.
type pebbleFatal struct{ reason string }

func (l pebbleLogger) Infof(format string, args ...any) {
	l.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Error("pebble: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	panic(pebbleFatal{fmt.Sprintf(format, args...)})
}
