package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// The cancel channels of requests are not looked at: an interrupted FLUSH must
// stage all the same, and EINTR from close(2) would leave a writer not knowing
// whether its messages are safe (F6).

// Create makes a file of its own under a name.
func (fs *FS) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if inStatus(in.NodeId) || in.NodeId != rootNode {
		return fuse.EACCES
	}
	if err := checkName(name); err != nil {
		return fs.status(err)
	}
	// Refused here a writer notices; errors of close are lost on shells.
	if err := fs.opts.Route.Admit(in.Uid, 1, 0); err != nil {
		return fs.status(err)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.draining {
		return fs.status(errDraining)
	}
	key := nameKey{in.Uid, name}
	if fs.findLocked(key) != nil && in.Flags&syscall.O_EXCL != 0 {
		return fuse.Status(syscall.EEXIST)
	}
	n := fs.newNodeLocked(fs.nextNode.Add(1), key, in.Gid, in.Mode&^in.Umask)
	fs.nameLocked(n, key)
	h := fs.openLocked(n, &in.InHeader, true)
	out.NodeId, out.Fh, out.OpenFlags = n.id, h.fh, fuse.FOPEN_DIRECT_IO
	n.attrLocked(h, &out.Attr)
	return fuse.OK
}

// openLocked makes a handle. Its number is that of the request.
func (fs *FS) openLocked(n *node, in *fuse.InHeader, writer bool) *handle {
	h := &handle{fh: in.Unique, node: n, writer: writer, thread: in.Pid, uid: in.Uid}
	n.handles = append(n.handles, h)
	fs.handles[h.fh] = h
	return h
}

// Open makes a file of its own, or, for reading only, joins the one that was
// opened last.
func (fs *FS) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.open(in, out)
	}
	writer := in.Flags&syscall.O_ACCMODE != syscall.O_RDONLY
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.draining && writer {
		return fs.status(errDraining)
	}
	n := fs.nodes[in.NodeId]
	switch {
	case n == nil && !writer:
		return fuse.ENOENT
	case n == nil:
		// Between the LOOKUP and this request the last handle was released.
		// ESTALE would reach the writer, so it gets a fresh file; only its name
		// is not known any more.
		n = fs.newNodeLocked(in.NodeId, nameKey{uid: in.Uid}, in.Gid, 0o600)
	case n.key.uid != in.Uid:
		// Another user came by. The kernel's number for it stays the other's;
		// requests with a handle find the right node.
		n = fs.newNodeLocked(fs.nextNode.Add(1), nameKey{uid: in.Uid}, in.Gid, 0o600)
	}
	h := fs.openLocked(n, &in.InHeader, writer)
	out.Fh, out.OpenFlags = h.fh, fuse.FOPEN_DIRECT_IO
	return fuse.OK
}

func (fs *FS) handle(fh uint64) *handle {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.handles[fh]
}

// writerOf returns the file that a request means: its own handle's, or for a
// reader the youngest of the name.
func (fs *FS) writerOf(fh uint64) *handle {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	h := fs.handles[fh]
	if h != nil && !h.writer {
		return h.node.youngestLocked()
	}
	return h
}

// Write stores data in memory.
func (fs *FS) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if inStatus(in.NodeId) {
		return fs.tree.write(in, data)
	}
	h := fs.handle(in.Fh)
	if h == nil || !h.writer {
		return 0, fuse.EBADF
	}
	if err := fs.write(h, data, int64(in.Offset), in.Flags&syscall.O_APPEND != 0); err != nil {
		return 0, fs.status(err)
	}
	return uint32(len(data)), fuse.OK
}

// Read returns what was written, until the file is released.
func (fs *FS) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	if inStatus(in.NodeId) {
		return fs.tree.read(in, len(buf))
	}
	h := fs.writerOf(in.Fh)
	if h == nil {
		return fuse.ReadResultData(nil), fuse.OK
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := copy(buf, part(h.buf, in.Offset, len(buf)))
	return fuse.ReadResultData(buf[:n]), fuse.OK
}

// part returns at most n bytes of b from offset on.
func part(b []byte, offset uint64, n int) []byte {
	if offset >= uint64(len(b)) {
		return nil
	}
	b = b[offset:]
	return b[:min(n, len(b))]
}

// Flush comes at each close of each descriptor of the file. See the package
// document.
func (fs *FS) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	if inStatus(in.NodeId) {
		return fuse.OK
	}
	return fs.sync(in.Fh, true)
}

// Fsync promises as much as Flush, but is no close.
func (fs *FS) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if inStatus(in.NodeId) {
		return fuse.OK
	}
	return fs.sync(in.Fh, false)
}

func (fs *FS) sync(fh uint64, closing bool) fuse.Status {
	h := fs.handle(fh)
	if h == nil || !h.writer {
		return fuse.OK
	}
	err := fs.stageNew(h, closing)
	if err != nil {
		fs.errors.Add(1)
	}
	return fs.status(err)
}

// Release comes once, after the last close, and late: close(2) does not wait
// for it. It cannot fail.
func (fs *FS) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	if inStatus(in.NodeId) {
		fs.tree.release(in.Fh)
		return
	}
	h := fs.handle(in.Fh)
	if h == nil {
		return
	}
	fs.finish(h)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.handles, h.fh)
	h.node.removeLocked(h)
	if len(h.node.handles) == 0 {
		fs.dropLocked(h.node)
	}
	fs.checkIdleLocked()
}

func (n *node) removeLocked(h *handle) {
	for i, o := range n.handles {
		if o == h {
			n.handles = append(n.handles[:i], n.handles[i+1:]...)
			return
		}
	}
}
