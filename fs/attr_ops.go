package fs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// dirTimeout is how long the kernel may keep the attributes of directories.
// Without it each create costs two GETATTR.
const dirTimeout = time.Minute

// dirMode lets everybody create and only root list: the names of others are
// nobody's business.
const dirMode = syscall.S_IFDIR | syscall.S_ISVTX | 0o733

// GetAttr describes a node; with a handle, the file of that handle.
func (fs *FS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.getAttr(in, out)
	}
	if in.NodeId == rootNode {
		fs.rootAttr(&out.Attr)
		out.SetTimeout(dirTimeout)
		return fuse.OK
	}
	hasHandle := in.Flags()&fuse.FUSE_GETATTR_FH != 0
	n := fs.nodeOf(in.NodeId, in.Fh(), hasHandle)
	if n == nil {
		return fuse.ENOENT
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var h *handle
	if hasHandle {
		h = fs.handles[in.Fh()]
	}
	n.attrLocked(h, &out.Attr)
	return fuse.OK
}

func (fs *FS) rootAttr(out *fuse.Attr) {
	*out = fuse.Attr{Ino: rootNode, Mode: dirMode, Nlink: 2, Blksize: 4096}
	out.SetTimes(&fs.started, &fs.started, &fs.started)
}

// SetAttr truncates and takes mode, times and, from root, owners.
func (fs *FS) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.setAttr(in, out)
	}
	if in.NodeId == rootNode {
		return fuse.EPERM
	}
	fh, hasHandle := in.GetFh()
	n := fs.nodeOf(in.NodeId, fh, hasHandle)
	if n == nil {
		return fuse.ENOENT
	}
	// in.Uid would be the new owner.
	if caller := in.Caller.Uid; n.key.uid != caller && caller != 0 {
		return fuse.EPERM
	}
	if size, ok := in.GetSize(); ok {
		if err := fs.setSize(n, in, int64(size)); err != nil {
			return fs.status(err)
		}
	}
	return fs.setOwner(n, in, out)
}

// setSize truncates. Without a handle, as truncate(2) sends it, it means a file
// that this process alone has open, and of which nothing is promised yet (G1);
// otherwise it does nothing. O_TRUNC comes with the OPEN, whose file is empty.
func (fs *FS) setSize(n *node, in *fuse.SetAttrIn, size int64) error {
	if fh, ok := in.GetFh(); ok {
		if h := fs.handle(fh); h != nil && h.writer {
			return fs.truncate(h, size)
		}
		return syscall.EBADF
	}
	fs.mu.Lock()
	alone := len(n.handles) == 1
	youngest := n.youngestLocked()
	fs.mu.Unlock()
	if !alone || youngest == nil || !sameProcess(youngest.thread, in.Pid) {
		return nil
	}
	youngest.mu.Lock()
	promised := youngest.stage != nil
	youngest.mu.Unlock()
	if promised {
		return nil
	}
	return fs.truncate(youngest, size)
}

// nodeOf returns the node that a request is about: that of its handle, if it has
// one, since the kernel may know the node by the number of one that is gone.
func (fs *FS) nodeOf(id, fh uint64, hasHandle bool) *node {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if hasHandle {
		if h := fs.handles[fh]; h != nil {
			return h.node
		}
	}
	return fs.nodes[id]
}

func (fs *FS) setOwner(n *node, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	uid, newUID := in.GetUID()
	gid, newGID := in.GetGID()
	if in.Caller.Uid != 0 && (newUID && uid != n.key.uid || newGID && gid != n.gid) {
		return fuse.EPERM
	}
	if newGID {
		n.gid = gid
	}
	// The owner of a name is who may see it; root may not give names away.
	if newUID && uid != n.key.uid {
		return fuse.EPERM
	}
	if mode, ok := in.GetMode(); ok {
		n.mode = mode & 0o777
	}
	if t, ok := in.GetMTime(); ok {
		n.mtime = t
	}
	n.attrLocked(nil, &out.Attr)
	return fuse.OK
}

// Access answers access(2) and chdir(2). Other requests are checked where they
// are served, since the mount is without default_permissions.
func (fs *FS) Access(_ <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	const read = 4
	switch {
	case inStatus(in.NodeId):
		return fs.tree.access(in)
	case in.NodeId == rootNode && in.Mask&read != 0 && in.Uid != 0:
		return fuse.EACCES
	}
	return fuse.OK
}

// StatFs shows the store, as df prints it.
func (fs *FS) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	const block = 4096
	space := fs.opts.Route.Space()
	*out = fuse.StatfsOut{
		Bsize: block, Frsize: block, NameLen: maxName,
		Blocks: (space.Used + space.Free) / block, Bfree: space.Free / block, Bavail: space.Free / block,
	}
	return fuse.OK
}
