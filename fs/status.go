package fs

import (
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// statusTree is the directory .status of the mount. Requests on its nodes are
// handed to it by the methods of FS.
//
// A node stands for one moment of a file: a flat file gets a new node at each
// LOOKUP. So the size that stat(2) tells is true, an open file does not change,
// and the kernel's cache is never stale. The inode number stays that of the path.
type statusTree struct {
	fs    *FS
	files []StatusFile
	began time.Time

	mu        sync.Mutex
	taken     uint64                    // snapshots so far
	snapshots map[uint64]*snapshot      // by node, of flat files
	opened    map[uint64]*snapshot      // by handle
	dirs      map[uint64]*statusListing // by handle
}

// statusEntry is what a LOOKUP finds.
type statusEntry struct {
	id   statusID
	attr fuse.Attr
	keep time.Duration // that the kernel may keep the attributes and, of a directory, the name
}

func newStatusTree(fs *FS) *statusTree {
	return &statusTree{
		fs: fs, files: fs.opts.Status, began: fs.started,
		snapshots: map[uint64]*snapshot{},
		opened:    map[uint64]*snapshot{},
		dirs:      map[uint64]*statusListing{},
	}
}

// lookupRoot finds .status itself.
func (t *statusTree) lookupRoot(out *fuse.EntryOut) fuse.Status {
	return t.reply(t.directory(statusID{kind: kindRoot}), nil, out)
}

func (t *statusTree) lookup(in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	dir := parseStatusID(in.NodeId)
	if err := t.mayUse(dir, &in.Caller); err != nil {
		return t.fs.status(err)
	}
	e, err := t.find(dir, name)
	return t.reply(e, err, out)
}

// find returns what has a name in a directory.
func (t *statusTree) find(dir statusID, name string) (statusEntry, error) {
	switch dir.kind {
	case kindRoot:
		return t.findFlat(name)
	}
	return statusEntry{}, syscall.ENOTDIR
}

func (t *statusTree) reply(e statusEntry, err error, out *fuse.EntryOut) fuse.Status {
	if err != nil {
		return t.fs.status(err)
	}
	out.NodeId, out.Attr = e.id.node(), e.attr
	out.SetAttrTimeout(e.keep)
	if e.id.isDir() {
		out.SetEntryTimeout(e.keep)
	}
	return fuse.OK
}

// directory describes a directory.
func (t *statusTree) directory(id statusID) statusEntry {
	e := statusEntry{id: id, keep: dirTimeout}
	e.attr = fuse.Attr{Ino: id.ino(), Mode: t.statusMode(id), Nlink: 2, Blksize: 4096}
	e.attr.SetTimes(&t.began, &t.began, &t.began)
	return e
}

// describe returns the attributes of a node.
func (t *statusTree) describe(id statusID) (statusEntry, error) {
	switch {
	case id.isDir():
		return t.directory(id), nil
	case id.kind == kindFlat:
		return t.flatEntry(id)
	}
	return statusEntry{}, syscall.ENOENT
}

func (t *statusTree) getAttr(in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if s := t.openFile(in.Fh()); s != nil && in.Flags()&fuse.FUSE_GETATTR_FH != 0 {
		out.Attr = s.attr
		out.SetTimeout(dirTimeout)
		return fuse.OK
	}
	e, err := t.describe(parseStatusID(in.NodeId))
	out.Attr = e.attr
	out.SetTimeout(e.keep)
	return t.fs.status(err)
}

// setAttr changes nothing: what the tree shows is not its own.
func (t *statusTree) setAttr(*fuse.SetAttrIn, *fuse.AttrOut) fuse.Status { return fuse.EPERM }

// access answers access(2) and chdir(2).
func (t *statusTree) access(in *fuse.AccessIn) fuse.Status {
	const write = 2
	id := parseStatusID(in.NodeId)
	if in.Mask&write != 0 && t.isPublic(id) {
		return fuse.EACCES
	}
	return t.fs.status(t.mayUse(id, &in.Caller))
}

func (t *statusTree) unlink(*fuse.InHeader, string) fuse.Status { return fuse.EPERM }

func (t *statusTree) rename(*fuse.RenameIn, string, string) fuse.Status { return fuse.EPERM }
