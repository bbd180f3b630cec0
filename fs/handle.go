package fs

import (
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/shm"
)

// handle is one open file description. If it may write it has a file of its own,
// unless the file is held; readers join that of a writer.
type handle struct {
	fh      uint64
	node    *node
	file    *file
	writer  bool
	uid     uint32
	process process // that opened it

	// flushed is when it was last flushed, in nanoseconds; 0 if it has been
	// written to since.
	flushed atomic.Int64
}

// looksClosed reports whether everybody who does not hold the handle should take
// it for closed.
func (h *handle) looksClosed(now time.Time) bool {
	at := h.flushed.Load()
	return at != 0 && now.UnixNano()-at < int64(closedTime)
}

// openLocked makes a handle. Its number is that of the request.
func (fs *FS) openLocked(n *node, f *file, in *fuse.InHeader, writer bool) *handle {
	h := &handle{fh: in.Unique &^ shm.Resent, node: n, file: f, writer: writer, uid: in.Uid}
	n.handles = append(n.handles, h)
	fs.handles[h.fh] = h
	f.handles++
	f.keptHandles++
	if writer {
		f.writers++
	}
	if !f.known {
		fs.noteFileLocked(f)
	}
	fs.noteHandleLocked(h)
	return h
}

// closeLocked removes a handle, and its node and name if they end with it.
func (fs *FS) closeLocked(h *handle) {
	n := h.node
	delete(fs.handles, h.fh)
	h.file.keptHandles--
	fs.noteHandleLocked(h)
	fs.noteNodeLocked(n)
	n.handles = slices.DeleteFunc(n.handles, func(o *handle) bool { return o == h })
	fs.usage.give(h.uid, holding{files: 1})
	if h.writer {
		n.size = uint64(h.file.size.Load())
		if at := h.file.modified.Load(); at != 0 {
			n.mtime = time.Unix(0, at)
		}
		fs.graceLocked(n, h.process)
	}
	fs.dropIfEndedLocked(n)
	fs.checkIdleLocked()
}

// handle returns an open handle, or nil.
func (fs *FS) handle(fh uint64) *handle {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.handles[fh]
}

// writerHandle returns the handle of a request that changes the file.
func (fs *FS) writerHandle(fh uint64) (*handle, error) {
	h := fs.handle(fh)
	if h == nil || !h.writer {
		return nil, syscall.EBADF
	}
	return h, nil
}
