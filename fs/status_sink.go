package fs

import (
	"bytes"
	"fmt"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Sink takes what an operator writes to a file of the status directory, through
// one handle. When Write returns nil what was whole in it is durable; Flush is the
// end of a close, which may have no more than a part of a line left. Neither is
// called by two at once.
type Sink interface {
	Write(data []byte) error
	Flush() error
}

// sinkHandle is an open handle of a file that is written to.
type sinkHandle struct {
	mu     lock
	sink   Sink
	begun  bool
	offset uint64 // up to which it was written
}

// newSink opens a file for writing; nil if it is not one to be written to.
func (t *statusTree) newSink(id statusID) *sinkHandle {
	if id.kind != kindFlat || t.flat(id).Sink == nil {
		return nil
	}
	return &sinkHandle{mu: newLock(), sink: t.flat(id).Sink()}
}

func (t *statusTree) sinkOf(fh uint64) *sinkHandle {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sinks[fh]
}

// writeSink hands data on. Who asks once more for what was done gets the same
// answer: a request may come twice.
func (t *statusTree) writeSink(h *sinkHandle, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	// It may go on after the request has been answered.
	offset, copied := in.Offset, bytes.Clone(data)
	err := t.fs.patiently(in.Unique, func() error { return h.write(offset, copied) })
	if err != nil {
		return 0, t.fs.status(err)
	}
	return uint32(len(data)), fuse.OK
}

func (h *sinkHandle) write(offset uint64, data []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begun {
		h.begun, h.offset = true, offset
	}
	end := offset + uint64(len(data))
	switch {
	case end <= h.offset:
		return nil
	case offset != h.offset:
		return fmt.Errorf("write at %d where %d is due: %w", offset, h.offset, syscall.EINVAL)
	}
	err := h.sink.Write(data)
	if err == nil {
		h.offset = end
	}
	return err
}

// flush ends a close of a file that is written to.
func (t *statusTree) flush(in *fuse.FlushIn) fuse.Status {
	h := t.sinkOf(in.Fh)
	if h == nil {
		return fuse.OK
	}
	return t.fs.status(t.fs.patiently(in.Unique, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.sink.Flush()
	}))
}
