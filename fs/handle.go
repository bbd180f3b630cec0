package fs

import (
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

	// stage holds what is staged; nil before there is anything. The first
	// entries of it are those of the whole records in buf[:consumed], which has
	// lines lines; another may stand for the rest.
	stage    *queue.Stage
	consumed int
	lines    int
	entries  int
	messages int // of the entries, those that are not dead letters
	tail     tail
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
	if err := fs.resize(h, max(int64(len(h.buf)), offset+int64(len(data)))); err != nil {
		return err
	}
	copy(h.buf[offset:], data)
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
	if offset < int64(h.consumed) {
		h.consumed, h.lines, h.entries, h.messages = 0, 0, 0, 0
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
		if err := fs.reserve(grown - int64(cap(h.buf))); err != nil {
			return err
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

// stageNew makes what is new durable, and is the ticket for the file's place. If
// this is a close, the name is free for others from then on.
func (fs *FS) stageNew(h *handle, closing bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.dirty && !h.abandoned {
		if err := fs.stagePiece(h); err != nil {
			return err
		}
	}
	if closing {
		h.closed.Store(true)
	}
	return nil
}

// pieceSize is how many bytes are decoded and put at a time. It bounds the
// memory for messages: a megabyte can hold half a million lines.
const pieceSize = 1 << 20

// stagePiece decodes and puts the next piece; the last one clears dirty.
func (fs *FS) stagePiece(h *handle) error {
	found, last := fs.decode(h.buf[h.consumed:], h.lines)
	add := found.Messages
	tail := tailNone
	if last && found.Tail != nil {
		add = append(add, *found.Tail)
		tail = tailMessage
		if found.Tail.Dead() {
			tail = tailDead
		}
	}
	if err := fs.put(h, add); err != nil {
		return err
	}
	h.consumed += found.Consumed
	h.lines += found.Lines
	h.entries += len(found.Messages)
	for i := range found.Messages {
		if !found.Messages[i].Dead() {
			h.messages++
		}
	}
	h.tail = tail
	h.dirty = !last
	return nil
}

// decode decodes a piece of data that holds at least one whole record, or all
// of it.
func (fs *FS) decode(data []byte, line int) (found ingest.Result, last bool) {
	for size := pieceSize; ; size *= 2 {
		last = size >= len(data)
		found = fs.opts.Format.Decode(data[:min(size, len(data))], ingest.Position{Line: line})
		if last || found.Consumed > 0 {
			return found, last
		}
	}
}

// put replaces what the stage has behind the first h.entries entries.
func (fs *FS) put(h *handle, add []queue.Message) error {
	if h.stage == nil {
		if len(add) == 0 {
			return nil
		}
		fs.mu.Lock()
		info := queue.StageInfo{File: h.node.key.name, UID: h.node.key.uid}
		fs.mu.Unlock()
		h.stage = fs.opts.Route.NewStage(queue.NewFileID(), info)
	}
	if len(add) == 0 && h.stage.Len() == h.entries {
		return nil
	}
	now := time.Now()
	info := h.stage.Info()
	for i := range add {
		m := &add[i]
		m.ID = h.stage.File().MessageID(m.Line)
		m.Ingested, m.File, m.UID = now, info.File, info.UID
	}
	return h.stage.Put(h.entries, add)
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
	messages, dead := h.messages, h.entries-h.messages
	switch h.tail {
	case tailMessage:
		messages++
	case tailDead:
		dead++
	}
	fs.files.Add(1)
	fs.messages.Add(uint64(messages))
	fs.dead.Add(uint64(dead))
	if dead > 0 {
		info := h.stage.Info()
		fs.opts.Logger.Warn("lines set aside", "file", info.File, "uid", info.UID, "id", h.stage.File(), "lines", dead)
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
