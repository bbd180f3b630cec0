package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logLimit bounds the lines of each kind, which is a level and a text: some at
// once, then one a minute. What happens to a message or at a dial is logged as a
// kind of thing that happens, never for each.
type logLimit struct {
	mu      sync.Mutex // guards what follows
	kinds   map[logKind]*logBudget
	dropped uint64
}

type logKind struct {
	level slog.Level
	text  string
}

// logBudget is what may still be logged of a kind.
type logBudget struct {
	left    int
	since   time.Time // of the last line a minute
	dropped uint64    // since the last line
}

const (
	logBurst = 10
	logEvery = time.Minute

	// maxKinds bounds the memory. What comes then is one kind.
	maxKinds = 512
)

func newLogLimit() *logLimit { return &logLimit{kinds: map[logKind]*logBudget{}} }

// take reports whether a record may be logged, and how many of its kind were not
// since the last one.
func (l *logLimit) take(kind logKind, now time.Time) (ok bool, dropped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.kinds[kind]
	if b == nil && len(l.kinds) >= maxKinds {
		kind = logKind{}
		b = l.kinds[kind]
	}
	if b == nil {
		b = &logBudget{left: logBurst, since: now}
		l.kinds[kind] = b
	}
	if n := int(now.Sub(b.since) / logEvery); n > 0 {
		b.left = min(logBurst, b.left+n)
		b.since = b.since.Add(time.Duration(n) * logEvery)
	}
	if b.left == 0 {
		b.dropped++
		l.dropped++
		return false, 0
	}
	b.left--
	dropped, b.dropped = b.dropped, 0
	return true, dropped
}

// total is how many records were not logged.
func (l *logLimit) total() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// limitHandler hands on what its limit lets through. Who has the level debug
// wants to see everything of it.
type limitHandler struct {
	limit *logLimit
	slog.Handler
}

var _ slog.Handler = limitHandler{}

// Handle is part of slog.Handler.
func (h limitHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return h.Handler.Handle(ctx, r)
	}
	ok, dropped := h.limit.take(logKind{r.Level, r.Message}, r.Time)
	if !ok {
		return nil
	}
	if dropped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Uint64("not_logged", dropped))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs is part of slog.Handler.
func (h limitHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limitHandler{h.limit, h.Handler.WithAttrs(attrs)}
}

// WithGroup is part of slog.Handler.
func (h limitHandler) WithGroup(name string) slog.Handler {
	return limitHandler{h.limit, h.Handler.WithGroup(name)}
}
