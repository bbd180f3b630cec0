package fs

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// handle is one open file description. If it may write, it is a file of its
// own, with its own bytes.
type handle struct {
	fh     uint64
	node   *node
	writer bool
	thread uint32 // that opened it
	uid    uint32

	// size is the number of bytes, readable without waiting for mu.
	size atomic.Int64

	// closed says that it has been flushed since its last write, so that it
	// looks closed to everybody who does not hold it.
	closed atomic.Bool

	mu  sync.Mutex
	buf []byte

	// abandoned says that its opener has unlinked it: nothing more is staged.
	abandoned bool

	// dirty says that buf has bytes that are not staged.
	dirty bool

	// stage holds what is staged; nil before there is anything.
	stage  *queue.Stage
	staged staged

	// newlines counts those that were written, whole or over others.
	newlines int
}

// staged says what of a file the stage stands for. Its first entries are those
// of the whole records in buf[:consumed], which has lines lines; another may
// stand for the rest.
type staged struct {
	consumed int
	lines    int
	entries  int
	messages int // of the entries, those that are not dead letters
	tail     tail
	reason   string // of the first dead letter
}

// add counts what was found in a piece.
func (s *staged) add(found *ingest.Result) {
	s.consumed += found.Consumed
	s.lines += found.Lines
	s.entries += len(found.Messages)
	for i := range found.Messages {
		if m := &found.Messages[i]; !m.Dead() {
			s.messages++
		} else if s.reason == "" {
			s.reason = fmt.Sprintf("line %d: %.100s", m.Line, m.Reason)
		}
	}
}

// tail says what stands in the stage for the last line without a newline.
type tail uint8

const (
	tailNone tail = iota
	tailMessage
	tailDead
)

// write puts data at an offset, or at the end.
func (fs *FS) write(h *handle, data []byte, offset int64, atEnd bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if atEnd {
		// Its own end, whatever the kernel believes: other files under the
		// same name have other sizes.
		offset = int64(len(h.buf))
	}
	lines := h.newlines + bytes.Count(data, []byte("\n"))
	if lines > maxLines {
		return fmt.Errorf("%w: more than %d lines", errFileLimit, maxLines)
	}
	if err := fs.resize(h, max(int64(len(h.buf)), offset+int64(len(data)))); err != nil {
		return err
	}
	copy(h.buf[offset:], data)
	h.newlines = lines
	h.touch(offset)
	return nil
}

// truncate sets the size of the file.
func (fs *FS) truncate(h *handle, size int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if size == int64(len(h.buf)) {
		return nil
	}
	from := min(size, int64(len(h.buf)))
	if err := fs.resize(h, size); err != nil {
		return err
	}
	h.touch(from)
	return nil
}

// touch notes that the bytes from offset on have changed.
func (h *handle) touch(offset int64) {
	h.dirty = true
	h.closed.Store(false)
	if offset < int64(h.staged.consumed) {
		h.staged = staged{}
	}
}

// resize makes the buffer size bytes long; new bytes are zero.
func (fs *FS) resize(h *handle, size int64) error {
	if size > fs.opts.FileLimit {
		return fmt.Errorf("%w: %d bytes of %d", errFileLimit, size, fs.opts.FileLimit)
	}
	old := int64(len(h.buf))
	if size <= int64(cap(h.buf)) {
		h.buf = h.buf[:size]
		if size > old {
			clear(h.buf[old:])
		}
	} else {
		grown := max(size, min(2*old, fs.opts.FileLimit))
		if err := fs.opts.Route.Admit(h.uid, 1, uint64(size)); err != nil {
			return err
		}
		if fs.reserve(grown-int64(cap(h.buf))) != nil {
			grown = size
			if err := fs.reserve(grown - int64(cap(h.buf))); err != nil {
				return err
			}
		}
		buf := make([]byte, size, grown)
		copy(buf, h.buf)
		h.buf = buf
	}
	h.size.Store(size)
	return nil
}

// reserve counts bytes of memory.
func (fs *FS) reserve(n int64) error {
	if fs.buffered.Add(n) > fs.opts.BufferLimit && n > 0 {
		fs.buffered.Add(-n)
		return errBufferLimit
	}
	return nil
}

// maxLines bounds the lines of a file, and so the memory for its records: 64 MiB
// could hold 30 million of them.
const maxLines = 1_000_000

// stageNew makes what is new durable, and is the ticket for the file's place. If
// this is a close, the name is free for others from then on.
func (fs *FS) stageNew(h *handle, closing bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dirty && !h.abandoned {
		if len(h.buf)-h.staged.consumed > pieceSize {
			// Few at a time: each takes several times its size.
			fs.large <- struct{}{}
			defer func() { <-fs.large }()
		}
		if err := fs.stageBytes(h); err != nil {
			return err
		}
	}
	if closing {
		h.closed.Store(true)
	}
	return nil
}

// pieceSize is how many bytes are decoded at a time. It bounds the memory for
// messages that are not encoded yet.
const pieceSize = 1 << 20

// maxLarge is how many files with more new bytes than pieceSize are staged at a
// time.
const maxLarge = 2

// stageBytes decodes what is new and puts it, all or nothing: what was promised
// before stays promised until the new list is on disk.
func (fs *FS) stageBytes(h *handle) error {
	if h.stage == nil {
		fs.mu.Lock()
		info := queue.StageInfo{File: h.node.key.name, UID: h.node.key.uid}
		fs.mu.Unlock()
		h.stage = fs.opts.Route.NewStage(queue.NewFileID(), info)
	}
	next := h.staged
	err := h.stage.PutPieces(h.staged.entries, func(yield func([]queue.Message) bool) {
		fs.decode(h.buf, &next, func(ms []queue.Message) { yield(identify(h.stage, ms)) })
	})
	if err != nil {
		return err
	}
	h.staged, h.dirty = next, false
	return nil
}

// decode decodes data behind what at says, piece by piece, and advances at.
func (fs *FS) decode(data []byte, at *staged, take func([]queue.Message)) {
	at.tail = tailNone
	for size := pieceSize; ; {
		rest := data[at.consumed:]
		last := size >= len(rest)
		found := fs.opts.Format.Decode(rest[:min(size, len(rest))], ingest.Position{Line: at.lines})
		if !last && found.Consumed == 0 {
			size *= 2 // a line that is longer than the piece
			continue
		}
		at.add(&found)
		if last && found.Tail != nil {
			found.Messages = append(found.Messages, *found.Tail)
			at.tail = tailMessage
			if found.Tail.Dead() {
				at.tail = tailDead
				if at.reason == "" {
					at.reason = fmt.Sprintf("line %d: %.100s", found.Tail.Line, found.Tail.Reason)
				}
			}
		}
		take(found.Messages)
		if last {
			return
		}
		size = pieceSize
	}
}

// identify says of messages where they come from.
func identify(stage *queue.Stage, ms []queue.Message) []queue.Message {
	now, info := time.Now(), stage.Info()
	for i := range ms {
		m := &ms[i]
		m.ID = stage.File().MessageID(m.Line)
		m.Ingested, m.File, m.UID = now, info.File, info.UID
	}
	return ms
}

// finish commits what is staged, at the RELEASE. What was written and never
// flushed (a descriptor that was lost in a socket, say) is staged first; its
// error has nobody to go to but the log.
func (fs *FS) finish(h *handle) {
	if !h.writer {
		return
	}
	if err := fs.stageNew(h, true); err != nil {
		fs.lost(h, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	fs.buffered.Add(-int64(cap(h.buf)))
	h.buf = nil
	if h.stage == nil {
		return // an empty file is nothing
	}
	if err := h.stage.Commit(); err != nil {
		fs.lost(h, err)
		return
	}
	messages, dead := h.staged.messages, h.staged.entries-h.staged.messages
	switch h.staged.tail {
	case tailMessage:
		messages++
	case tailDead:
		dead++
	}
	if messages+dead == 0 {
		return // blank lines are nothing either
	}
	fs.files.Add(1)
	fs.messages.Add(uint64(messages))
	fs.dead.Add(uint64(dead))
	if dead > 0 {
		info := h.stage.Info()
		fs.opts.Logger.Warn("lines set aside", "file", info.File, "uid", info.UID, "id", h.stage.File(), "lines", dead, "first", h.staged.reason)
	}
}

// lost reports an error that no writer will see.
func (fs *FS) lost(h *handle, err error) {
	fs.errors.Add(1)
	fs.mu.Lock()
	name := h.node.key.name
	fs.mu.Unlock()
	fs.opts.Logger.Error("release", "file", name, "error", err)
}
