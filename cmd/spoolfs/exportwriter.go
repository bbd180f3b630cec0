package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"spoolfs/queue"
)

// exportWriter writes an export in one of its formats.
type exportWriter struct {
	out    *bufio.Writer
	bundle bool
	left   int // messages that a retry file of sr3 cannot hold
	err    error
}

func newExportWriter(out io.Writer, format, from string) *exportWriter {
	w := &exportWriter{out: bufio.NewWriterSize(out, 1<<20), bundle: format == "bundle"}
	if w.bundle {
		w.write(newBundleHead(queue.NewFileID(), from))
	}
	return w
}

func (w *exportWriter) write(text []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(text)
	}
}

// message writes a message.
func (w *exportWriter) message(route, state string, m *queue.Message) error {
	if w.bundle {
		w.write(bundleLine(route, state, m))
		return w.failed()
	}
	return w.retryLine(state, m)
}

// retryLine writes a message that waits as a line of a retry file, if it can be
// one.
func (w *exportWriter) retryLine(state string, m *queue.Message) error {
	if m.Dead() || state != stateReady && state != stateDelayed {
		return nil
	}
	line, ok := diskqueueLine(m)
	if !ok {
		w.left++
	}
	w.write(line)
	return w.failed()
}

// lines writes lines of a bundle.
func (w *exportWriter) lines(lines []byte) error {
	if w.bundle {
		w.write(lines)
		return w.failed()
	}
	for line := range bytes.Lines(lines) {
		var b bundled
		if err := json.Unmarshal(line, &b); err != nil {
			return withCode(exitInternal, fmt.Errorf("export: %w", err))
		}
		m, err := b.message()
		if err != nil {
			return withCode(exitInternal, fmt.Errorf("export: %w", err))
		}
		if err := w.retryLine(b.State, &m); err != nil {
			return err
		}
	}
	return nil
}

func (w *exportWriter) failed() error {
	if w.err != nil {
		return withCode(exitIO, fmt.Errorf("export: %w", w.err))
	}
	return nil
}

// flush ends the export.
func (w *exportWriter) flush() error {
	w.err = errors.Join(w.err, w.out.Flush())
	return w.failed()
}

// verdict says what could not be written.
func (w *exportWriter) verdict() error {
	if w.left > 0 {
		return withCode(exitData, fmt.Errorf("%d messages are none that a retry file of sr3 can hold: export them as a bundle", w.left))
	}
	return nil
}
