package fs

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// statusTree is the directory .status of the mount. Requests on its nodes are
// handed to it by the methods of FS.
//
// A node stands for one moment of a file: a flat file gets a new node at each
// LOOKUP, a message one for each attempt. So the size that stat(2) tells is true,
// an open file does not change, and the kernel's cache is never stale. The inode
// number stays that of the path.
type statusTree struct {
	fs    *FS
	files []StatusFile
	began time.Time

	// routes are listed by their index in the order of their numbers, which is
	// part of node ids: a route that is new is the last.
	routes atomic.Pointer[[]*route]

	// places remembers the nodes of names that were listed or looked for, dues
	// when delayed messages are due, which their nodes do not tell.
	places *recent[statusName, uint64]
	dues   *recent[uint64, int64] // by inode number

	// help is what reading ctl shows.
	help []byte

	purged, redriven atomic.Uint64
	scans            atomic.Uint64 // for names that were not remembered

	mu        sync.Mutex
	snapshots map[uint64]*snapshot      // by node, of flat files
	pages     []uint64                  // the nodes of the last pages, which may be gone
	opened    map[uint64]*snapshot      // by handle
	sinks     map[uint64]*sinkHandle    // by handle
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
		places:    newRecent[statusName, uint64](maxPlaces),
		dues:      newRecent[uint64, int64](maxDues),
		help:      helpText(fs.opts.Commands),
		snapshots: map[uint64]*snapshot{},
		opened:    map[uint64]*snapshot{},
		sinks:     map[uint64]*sinkHandle{},
		dirs:      map[uint64]*statusListing{},
	}
}

// lookupRoot finds .status itself.
func (t *statusTree) lookupRoot(out *fuse.EntryOut) fuse.Status {
	return t.reply(t.directory(statusID{kind: kindRoot}), nil, out)
}

func (t *statusTree) lookup(in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	dir := parseStatusID(in.NodeId)
	if err := t.mayLookFor(dir, name, &in.Caller); err != nil {
		return t.fs.status(err)
	}
	e, err := patient(t.fs, in.Unique, func() (statusEntry, error) { return t.find(dir, name) })
	return t.reply(e, err, out)
}

// find returns what has a name in a directory.
func (t *statusTree) find(dir statusID, name string) (statusEntry, error) {
	switch dir.kind {
	case kindRoot:
		return t.findInRoot(name)
	case kindRoutes:
		return t.findRoute(name)
	case kindOpenDir:
		return t.findUser(name)
	case kindUserDir:
		return t.findOpen(dir, name)
	case kindRoute:
		if kind, ok := routeDirs[name]; ok {
			return t.directory(statusID{kind: kind, route: dir.route}), nil
		}
		return statusEntry{}, syscall.ENOENT
	}
	if dir.holdsMessages() {
		id, e, err := t.locate(dir, name)
		if err != nil {
			return statusEntry{}, err
		}
		return t.messageFile(id, e).entry(id), nil
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
	if !t.isPublic(id) {
		e.attr.Gid = t.fs.tuned.Load().StatusGroup
	}
	if id.kind == kindUserDir {
		e.attr.Uid, e.keep = uint32(id.number), 0
	}
	e.attr.SetTimes(&t.began, &t.began, &t.began)
	return e
}

// describe returns the attributes of a node.
func (t *statusTree) describe(id statusID) (statusEntry, error) {
	switch {
	case id.isDir():
		return t.directory(id), nil
	case id.isSnapshot():
		return t.flatEntry(id)
	case id.kind == kindControl:
		return t.controlEntry(), nil
	case id.kind == kindOpenFile:
		return t.openEntry(id)
	case id.isMessage():
		s, err := t.moment(id)
		if err != nil {
			return statusEntry{}, err
		}
		return s.entry(id), nil
	}
	return statusEntry{}, syscall.ENOENT
}

func (t *statusTree) getAttr(in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if s := t.openFile(in.Fh()); s != nil && in.Flags()&fuse.FUSE_GETATTR_FH != 0 {
		out.Attr = s.attr
		out.SetTimeout(dirTimeout)
		return fuse.OK
	}
	id := parseStatusID(in.NodeId)
	e, err := patient(t.fs, in.Unique, func() (statusEntry, error) { return t.describe(id) })
	out.Attr = e.attr
	out.SetTimeout(e.keep)
	return t.fs.status(err)
}

// setAttr changes nothing: what the tree shows is not its own. Only what empties
// ctl before it is written to does not fail.
func (t *statusTree) setAttr(in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	id := parseStatusID(in.NodeId)
	if id.kind != kindControl && !t.takesWrites(id) || in.Valid&^(fuse.FATTR_SIZE|fuse.FATTR_FH|fuse.FATTR_LOCKOWNER) != 0 {
		return fuse.EPERM
	}
	e, err := t.describe(id)
	if err != nil {
		return t.fs.status(err)
	}
	out.Attr = e.attr
	return t.fs.status(t.mayUse(id, &in.Caller))
}

// takesWrites reports whether a flat file can be written to.
func (t *statusTree) takesWrites(id statusID) bool {
	return id.kind == kindFlat && t.flat(id).Sink != nil
}

// access answers access(2) and chdir(2).
func (t *statusTree) access(in *fuse.AccessIn) fuse.Status {
	const write = 2
	id := parseStatusID(in.NodeId)
	if in.Mask&write != 0 && t.isPublic(id) {
		return fuse.EACCES
	}
	if id.kind == kindOpenFile && in.Mask != 0 {
		return fuse.EACCES
	}
	return t.fs.status(t.mayUse(id, &in.Caller))
}
