package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
)

// logOptions say what the log looks like.
type logOptions struct {
	level   slog.Leveler // least
	format  string       // text or json
	journal bool         // with priorities, and without times, which the journal has itself
}

// newLogger makes the log, on w, and of the same records the events. No kind of
// record floods them; limit knows what was left out.
func newLogger(opts logOptions, w, events io.Writer, limit *logLimit) *slog.Logger {
	return slog.New(limitHandler{limit, bothHandler{
		opts.handler(w),
		slog.NewTextHandler(events, nil),
	}})
}

func (o logOptions) handler(w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: o.level}
	if o.journal {
		options.ReplaceAttr = withoutTime
	}
	form := func(w io.Writer) slog.Handler {
		if o.format == "json" {
			return slog.NewJSONHandler(w, options)
		}
		return slog.NewTextHandler(w, options)
	}
	if !o.journal {
		return form(w)
	}
	var h journalHandler
	for i, priority := range journalPriorities {
		h[i] = form(prefixWriter{w, fmt.Sprintf("<%d>", priority)})
	}
	return h
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// journalPriorities are those of syslog for error, warning, info and debug.
var journalPriorities = [...]int{3, 4, 6, 7}

// journalHandler has a handler for each of journalPriorities.
type journalHandler [len(journalPriorities)]slog.Handler

var _ slog.Handler = journalHandler{}

func (h journalHandler) of(level slog.Level) slog.Handler {
	switch {
	case level >= slog.LevelError:
		return h[0]
	case level >= slog.LevelWarn:
		return h[1]
	case level >= slog.LevelInfo:
		return h[2]
	}
	return h[3]
}

// Enabled is part of slog.Handler.
func (h journalHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.of(level).Enabled(ctx, level)
}

// Handle is part of slog.Handler.
func (h journalHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.of(r.Level).Handle(ctx, r)
}

// WithAttrs is part of slog.Handler.
func (h journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for i := range h {
		h[i] = h[i].WithAttrs(attrs)
	}
	return h
}

// WithGroup is part of slog.Handler.
func (h journalHandler) WithGroup(name string) slog.Handler {
	for i := range h {
		h[i] = h[i].WithGroup(name)
	}
	return h
}

// prefixWriter writes lines with something before each, which come one at a time.
type prefixWriter struct {
	to     io.Writer
	prefix string
}

// Write is part of io.Writer.
func (w prefixWriter) Write(line []byte) (int, error) {
	if _, err := w.to.Write(append([]byte(w.prefix), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// isJournal reports whether w is the journal's: systemd tells the device and the
// inode of what it has connected with stdout or stderr.
func isJournal(w io.Writer, stream string) bool {
	f, ok := w.(*os.File)
	if !ok || stream == "" {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
