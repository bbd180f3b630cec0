package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// statusDir is hidden from globs, so that "rm *" never touches it.
const statusDir = ".status"

// Lookup finds a name. It is asked for each use of a name, since the answer
// depends on who asks (the entry timeout is 0).
func (fs *FS) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.lookup(in, name, out)
	}
	switch {
	case in.NodeId != rootNode:
		return fuse.ENOTDIR
	case name == statusDir:
		return fs.tree.lookupRoot(out)
	case len(name) > maxName:
		return fuse.Status(syscall.ENAMETOOLONG)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := fs.findLocked(nameKey{in.Uid, name})
	if n == nil {
		return fuse.ENOENT
	}
	out.NodeId = n.id
	n.attrLocked(nil, &out.Attr)
	return fuse.OK
}

// Forget drops the snapshot of a status file. Nodes of writers do not count
// their lookups.
func (fs *FS) Forget(id, _ uint64) {
	if inStatus(id) {
		fs.tree.forget(id)
	}
}

// Unlink takes a name away. What no close or fsync has promised yet is dropped
// if the process that unlinks has opened it; all else goes on without a name
// and is published.
func (fs *FS) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.unlink(in, name)
	}
	if in.NodeId != rootNode {
		return fuse.EPERM
	}
	fs.mu.Lock()
	n := fs.findLocked(nameKey{in.Uid, name})
	if n == nil {
		fs.mu.Unlock()
		return fuse.ENOENT
	}
	fs.unnameLocked(n)
	handles := append([]*handle(nil), n.handles...)
	fs.mu.Unlock()
	for _, h := range handles {
		if h.writer && sameProcess(h.thread, in.Pid) {
			h.mu.Lock()
			h.abandoned = true
			h.mu.Unlock()
		}
	}
	return fuse.OK
}

// Rename changes the name of what is open. What had the new name goes on
// without one: nothing that was closed is taken back.
func (fs *FS) Rename(_ <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	if inStatus(in.NodeId) || inStatus(in.Newdir) {
		return fs.tree.rename(in, oldName, newName)
	}
	if in.NodeId != rootNode || in.Newdir != rootNode {
		return fuse.EPERM
	}
	if err := checkName(newName); err != nil {
		return fs.status(err)
	}
	if in.Flags&^unix.RENAME_NOREPLACE != 0 {
		return fuse.EINVAL
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := fs.findLocked(nameKey{in.Uid, oldName})
	if n == nil {
		return fuse.ENOENT
	}
	key := nameKey{in.Uid, newName}
	target := fs.findLocked(key)
	if target == n {
		return fuse.OK
	}
	if target != nil && in.Flags&unix.RENAME_NOREPLACE != 0 {
		return fuse.Status(syscall.EEXIST)
	}
	fs.nameLocked(n, key)
	return fuse.OK
}

// The rest is refused, each with the errno that programs expect.

func (fs *FS) Mkdir(<-chan struct{}, *fuse.MkdirIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (fs *FS) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	if inStatus(in.NodeId) || in.NodeId == rootNode && name == statusDir {
		return fuse.EPERM
	}
	return fuse.ENOENT
}

func (fs *FS) Mknod(<-chan struct{}, *fuse.MknodIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (fs *FS) Link(<-chan struct{}, *fuse.LinkIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (fs *FS) Symlink(<-chan struct{}, *fuse.InHeader, string, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (fs *FS) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.Status(syscall.EOPNOTSUPP)
}
