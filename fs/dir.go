package fs

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/queue"
)

// dir is a directory: the root, a standing one, or one that a user has made. All
// users see the same directories, and each his own names in them.
type dir struct {
	id       uint64
	standing bool

	// route is where files in it go; nil if that is up to its parent.
	route *route

	// The fields below are guarded by FS.mu. A directory is gone when it has no
	// parent and is not the root.

	parent   *dir
	name     string
	uid, gid uint32
	mode     uint32
	mtime    time.Time
	dirs     map[string]*dir
	tops     map[string]*dir // of the root: the directories of routes
	nodes    map[nameKey]*node

	// payer is the user whose limit counts the directory.
	payer uint32

	// marking guards mark, the stage that keeps the directory of a user in the
	// store. It is not taken under FS.mu.
	marking sync.Mutex
	mark    *queue.Stage

	// markID is the file id of mark. made and moved are the requests that made the
	// directory and renamed it last.
	markID      queue.FileID
	made, moved uint64
	noted       bool // see noteDirLocked
}

// nameKey is a name in a directory as one user sees it. Names are private to
// users, so that nobody can read, block or guess another's.
type nameKey struct {
	uid  uint32
	name string
}

// standingDirs is how many directories +0, +1 … stand in a route. The kernel
// creates files under a lock of the directory; writers who spread over these
// need not wait for each other.
const standingDirs = 256

// standingNode is the node id of +0.
const standingNode = 512

// makeRoot makes the directories that are always there.
func (fs *FS) makeRoot() {
	r := &route{queue: fs.opts.Route}
	r.tuned.Store(fs.opts.root())
	r.dir = &dir{id: rootNode, route: r, mode: dirMode, mtime: fs.started}
	fs.root, fs.routes = r.dir, []*route{r}
	fs.dirs[rootNode] = r.dir
	fs.makeStanding(r.dir, standingNode)
}

// dirLocked returns a directory by its node.
func (fs *FS) dirLocked(id uint64) (*dir, error) {
	d := fs.dirs[id]
	switch {
	case d != nil:
		return d, nil
	case fs.nodes[id] != nil:
		return nil, syscall.ENOTDIR
	}
	return nil, syscall.ENOENT // removed
}

// routeLocked is the route of the files in a directory: that of the nearest one
// above that has one.
func (d *dir) routeLocked() *route {
	for d.route == nil {
		d = d.parent
	}
	return d.route
}

// pathLocked is the path of a name in the directory, from the directory of its
// route.
func (d *dir) pathLocked(name string) string {
	for ; d.parent != nil && d.route == nil; d = d.parent {
		name = d.name + "/" + name
	}
	return name
}

// mountPathLocked is the path from the mount's root.
func (d *dir) mountPathLocked(name string) string {
	for ; d.parent != nil; d = d.parent {
		name = d.name + "/" + name
	}
	return name
}

// depthLocked is the length of the longest path of a directory below this one.
func (d *dir) depthLocked() int {
	longest := 0
	for name, sub := range d.dirs {
		longest = max(longest, 1+len(name)+sub.depthLocked())
	}
	return longest
}

// addDirLocked makes a directory of a user.
func (fs *FS) addDirLocked(parent *dir, name string, attr *fuse.Attr) *dir {
	d := &dir{
		id: fs.newID(), parent: parent, name: name,
		uid: attr.Uid, gid: attr.Gid, mode: attr.Mode & 0o7777, mtime: fs.now(), payer: attr.Uid,
		markID: queue.NewFileID(),
	}
	if parent.dirs == nil {
		parent.dirs = map[string]*dir{}
	}
	parent.dirs[name] = d
	fs.dirs[d.id] = d
	parent.mtime = d.mtime
	fs.noteDirLocked(d)
	fs.noteDirLocked(parent)
	return d
}

// dropDirLocked removes a directory. Files that are still open in it go on.
func (fs *FS) dropDirLocked(d *dir) {
	for _, n := range d.nodes {
		fs.unnameLocked(n)
		fs.dropIfEndedLocked(n)
	}
	delete(d.parent.dirs, d.name)
	delete(fs.dirs, d.id)
	fs.usage.give(d.payer, holding{files: 1})
	d.parent.mtime = fs.now()
	fs.noteDirLocked(d)
	fs.noteDirLocked(d.parent)
	d.route, d.parent = d.routeLocked(), nil // for the files that are open
}

// isEmptyLocked reports whether a directory holds neither directories nor names,
// anybody's.
func (fs *FS) isEmptyLocked(d *dir) bool {
	if len(d.dirs) > 0 {
		return false
	}
	for _, n := range d.nodes {
		if n.isOpenLocked(fs.now()) {
			return false
		}
	}
	return true
}

// isWithinLocked reports whether d is top or lies in it.
func (d *dir) isWithinLocked(top *dir) bool {
	for ; d != nil; d = d.parent {
		if d == top {
			return true
		}
	}
	return false
}

func (d *dir) attrLocked(out *fuse.Attr) {
	*out = fuse.Attr{
		Ino: d.id, Mode: syscall.S_IFDIR | d.mode, Nlink: 2, Blksize: 4096,
		Owner: fuse.Owner{Uid: d.uid, Gid: d.gid},
	}
	out.SetTimes(&d.mtime, &d.mtime, &d.mtime)
}

// entryLocked answers that a directory is what was looked for. The kernel may
// keep that: unlike names, directories are the same for all.
func (d *dir) entryLocked(out *fuse.EntryOut) {
	out.NodeId = d.id
	d.attrLocked(&out.Attr)
	out.SetEntryTimeout(dirTimeout)
	out.SetAttrTimeout(dirTimeout)
}

// isHeld reports whether a name waits for its rename: the temporary names of
// programs that write and then rename.
func isHeld(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp") ||
		strings.HasSuffix(name, ".part") || strings.HasSuffix(name, ".inflight")
}
