package fs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// dirTimeout is how long the kernel may keep what it knows of directories.
// Without it each create costs two GETATTR.
const dirTimeout = time.Minute

// fileTimeout is how long it may keep the attributes of a new file.
const fileTimeout = time.Second

// dirMode lets everybody create and only root list: the names of others are
// nobody's business.
const dirMode = syscall.S_ISVTX | 0o733

// GetAttr describes a node; with a handle, the file of that handle.
func (fs *FS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.getAttr(in, out)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if d := fs.dirs[in.NodeId]; d != nil {
		d.attrLocked(&out.Attr)
		out.SetTimeout(dirTimeout)
		return fuse.OK
	}
	n, h := fs.nodeLocked(in.NodeId, in.Fh(), in.Flags()&fuse.FUSE_GETATTR_FH != 0)
	if n == nil {
		return fuse.ENOENT
	}
	n.attrLocked(h.fileOrNil(), &out.Attr)
	return fuse.OK
}

// nodeLocked returns the node and the handle that a request is about. The node is
// that of its handle, if it has one, since the kernel may know the node by the
// number of one that is gone.
func (fs *FS) nodeLocked(id, fh uint64, hasHandle bool) (*node, *handle) {
	if hasHandle {
		if h := fs.handles[fh]; h != nil {
			return h.node, h
		}
	}
	return fs.nodes[id], nil
}

func (h *handle) fileOrNil() *file {
	if h == nil {
		return nil
	}
	return h.file
}

// SetAttr truncates and takes mode, times and owners.
func (fs *FS) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.setAttr(in, out)
	}
	fs.mu.Lock()
	if d := fs.dirs[in.NodeId]; d != nil {
		fs.mu.Unlock()
		return fs.setDirAttr(d, in, out)
	}
	fh, hasHandle := in.GetFh()
	n, h := fs.nodeLocked(in.NodeId, fh, hasHandle)
	err := error(syscall.ENOENT)
	switch {
	case n == nil:
	case h != nil && in.Valid&^fuse.FATTR_LOCKOWNER == fuse.FATTR_SIZE|fuse.FATTR_FH:
		err = nil // ftruncate(2): whoever has the descriptor may
	default:
		err = n.mayTouchLocked(&in.Caller)
	}
	fs.mu.Unlock()
	if err != nil {
		return fs.status(err)
	}
	if fs.answeredBefore(&in.InHeader) {
		// It may have been answered, and what came after it must not be undone.
		in.Valid &= fuse.FATTR_FH
	}
	if size, ok := in.GetSize(); ok {
		if err := fs.setSize(n, h, in, int64(size)); err != nil {
			return fs.status(err)
		}
	}
	return fs.setFileAttr(n, h, in, out)
}

// setSize truncates. Without a handle, as truncate(2) sends it, it means a held
// file, or a file that this process alone has open and of which nothing is
// promised yet (G1); otherwise it does nothing. O_TRUNC comes with the OPEN.
func (fs *FS) setSize(n *node, h *handle, in *fuse.SetAttrIn, size int64) error {
	if h != nil {
		if !h.writer {
			return syscall.EBADF
		}
		h.flushed.Store(0)
		return fs.truncate(in.Unique, h.file, size)
	}
	fs.mu.Lock()
	held, alone := n.held, len(n.handles) == 1
	if held == nil && alone {
		h = n.handles[0]
	}
	fs.mu.Unlock()
	if held != nil {
		return fs.patiently(in.Unique, func() error {
			defer fs.letGo(held) // no close will come
			if err := fs.truncate(0, held, size); err != nil {
				return err
			}
			return fs.stageNew(0, held, false)
		})
	}
	if h == nil || !h.writer || h.process == 0 || h.process != fs.processOf(in.Pid) {
		return nil
	}
	if !fs.lock(in.Unique, h.file) {
		return errStuck
	}
	promised := h.file.stage != nil
	fs.unlock(h.file)
	if promised {
		return nil
	}
	return fs.truncate(in.Unique, h.file, size)
}

func (fs *FS) setFileAttr(n *node, h *handle, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := mayChown(in, n.owner, n.gid); err != nil {
		return fs.status(err)
	}
	fs.noteNodeLocked(n)
	fs.outcomeLocked(in.Unique, 0)
	if uid, ok := in.GetUID(); ok {
		n.owner = uid
	}
	if gid, ok := in.GetGID(); ok {
		n.gid = gid
	}
	if mode, ok := in.GetMode(); ok {
		n.mode = mode & 0o777
	}
	f := h.fileOrNil()
	if f == nil {
		f = n.youngestLocked()
	}
	if t, ok := in.GetMTime(); ok {
		n.mtime, n.touched = t, fs.now().UnixNano()
		if f != nil {
			f.modified.Store(0)
		}
	}
	n.attrLocked(f, &out.Attr)
	return fuse.OK
}

// setDirAttr changes the mode and the owners of a directory, and stores them.
func (fs *FS) setDirAttr(d *dir, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	fs.mu.Lock()
	err := d.mayTouchLocked(&in.Caller)
	if err == nil {
		err = mayChown(in, d.uid, d.gid)
	}
	if err != nil {
		fs.mu.Unlock()
		return fs.status(err)
	}
	fs.noteDirLocked(d)
	before := d.markLocked()
	if uid, ok := in.GetUID(); ok {
		d.uid = uid
	}
	if gid, ok := in.GetGID(); ok {
		d.gid = gid
	}
	if mode, ok := in.GetMode(); ok {
		d.mode = mode & 0o7777
	}
	if t, ok := in.GetMTime(); ok {
		d.mtime = t
	}
	mark, route := d.markLocked(), d.routeLocked()
	d.attrLocked(&out.Attr)
	out.SetTimeout(dirTimeout)
	fs.mu.Unlock()
	if mark == before {
		return fuse.OK
	}
	return fs.status(fs.patiently(in.Unique, func() error { return d.storeMark(route.queue, mark) }))
}

// Access answers access(2) and chdir(2). Other requests are checked where they
// are served, since the mount is without default_permissions.
func (fs *FS) Access(_ <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.access(in)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if d := fs.dirs[in.NodeId]; d != nil {
		return fs.status(d.mayUseLocked(&in.Caller, in.Mask))
	}
	return fuse.OK
}

// StatFs shows the store, as df prints it.
func (fs *FS) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	const block = 4096
	space, files := fs.opts.Route.Space(), uint64(fs.tuned.Load().OpenLimit)
	*out = fuse.StatfsOut{
		Bsize: block, Frsize: block, NameLen: maxName,
		Blocks: (space.Used + space.Free) / block, Bfree: space.Free / block, Bavail: space.Free / block,
		Files: files, Ffree: files - min(files, uint64(fs.usage.held().files)),
	}
	return fuse.OK
}
