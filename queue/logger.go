package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
)

// pebbleLogger passes what Pebble says to slog. Pebble calls Fatalf where it
// cannot go on, such as a commit or a change of its manifest on a full disk. Its
// own logger ends the process there, and one that returned would be worse: the
// synced write would return nil and be gone after the next start (measured). So
// Fatalf does not return: in a goroutine of ours it panics, and answered
// turns that into an error; one of Pebble's ends there, with its deferred
// functions. In both cases the engine has failed.
type pebbleLogger struct {
	log  *slog.Logger
	fail func(error)
}

// pebbleFatal is the value of that panic.
type pebbleFatal struct{ err error }

func (l pebbleLogger) Infof(format string, args ...any) {
	l.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Error("pebble: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	for _, a := range args {
		if cause, ok := a.(error); ok {
			err = cause // ENOSPC is to be known as such
		}
	}
	l.fail(err)
	if ours() {
		panic(pebbleFatal{err})
	}
	runtime.Goexit()
}

// answered calls f, which uses a database, and makes an error of a Fatalf in it.
func answered(f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case pebbleFatal:
			err = errors.Join(err, p.err)
		default:
			panic(p)
		}
	}()
	return f()
}

// ours reports whether answered is among the callers.
func ours() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if f.Function == "spoolfs/queue.answered" {
			return true
		}
		if !more {
			return false
		}
	}
}
