package main

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
)

// maxEvents is how many events are kept.
const maxEvents = 500

// events are the last lines of the log, from level info on, whatever the level
// of the log itself: .status/events.
type events struct {
	mu    sync.Mutex
	lines [][]byte // a ring, of which next is the oldest once it is full
	next  int
}

// Write takes one line.
func (e *events) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	line = bytes.Clone(line)
	if len(e.lines) < maxEvents {
		e.lines = append(e.lines, line)
	} else {
		e.lines[e.next] = line
		e.next = (e.next + 1) % maxEvents
	}
	return len(line), nil
}

// text returns the lines, the oldest first.
func (e *events) text() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bytes.Join(slices.Concat(e.lines[e.next:], e.lines[:e.next]), nil)
}

// bothHandler hands records to the log and to the events.
type bothHandler [2]slog.Handler

var _ slog.Handler = bothHandler{}

// Enabled reports whether one of them wants records of a level.
func (h bothHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h[0].Enabled(ctx, level) || h[1].Enabled(ctx, level)
}

// Handle hands over a record.
func (h bothHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	for _, one := range h {
		if one.Enabled(ctx, r.Level) {
			if e := one.Handle(ctx, r.Clone()); err == nil {
				err = e
			}
		}
	}
	return err
}

// WithAttrs is part of slog.Handler.
func (h bothHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bothHandler{h[0].WithAttrs(attrs), h[1].WithAttrs(attrs)}
}

// WithGroup is part of slog.Handler.
func (h bothHandler) WithGroup(name string) slog.Handler {
	return bothHandler{h[0].WithGroup(name), h[1].WithGroup(name)}
}
