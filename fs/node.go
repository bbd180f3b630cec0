package fs

import (
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is what the kernel knows as an inode: the file or files that are open
// under a name. It ends when the last handle is released.
type node struct {
	id      uint64
	created time.Time

	// The fields below are guarded by FS.mu.

	key     nameKey
	named   bool // key leads to this node
	mode    uint32
	gid     uint32
	mtime   time.Time
	handles []*handle // in the order of opening
}

// nameKey is a name as one user sees it. Names are private to users, so that
// nobody can read, block or guess another's.
type nameKey struct {
	uid  uint32
	name string
}

// maxName is the longest file name in bytes, as on other file systems.
const maxName = 255

// isHeld reports whether a name waits for its rename: the temporary names of
// programs that write and then rename.
func isHeld(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp") ||
		strings.HasSuffix(name, ".part") || strings.HasSuffix(name, ".inflight")
}

// checkName refuses names that cannot be used for a file.
func checkName(name string) error {
	switch {
	case len(name) > maxName:
		return syscall.ENAMETOOLONG
	case isHeld(name):
		// Published at once they would be published under a name, and at a
		// moment, that their writer did not mean.
		return syscall.EOPNOTSUPP
	}
	return nil
}

// findLocked returns the node of a name if the name exists for this user. An
// ordinary name whose handles have all been flushed since their last write does
// not: its files are closed, only their RELEASE is late.
func (fs *FS) findLocked(key nameKey) *node {
	n := fs.names[key]
	if n == nil {
		return nil
	}
	for _, h := range n.handles {
		if !h.closed.Load() {
			return n
		}
	}
	return nil
}

func (fs *FS) newNodeLocked(id uint64, key nameKey, gid, mode uint32) *node {
	now := time.Now()
	n := &node{
		id: id, created: now, mtime: now,
		key: key, gid: gid, mode: mode & 0o777,
	}
	fs.nodes[n.id] = n
	return n
}

// nameLocked lets the name lead to n. The node that had it goes on without.
func (fs *FS) nameLocked(n *node, key nameKey) {
	fs.unnameLocked(n)
	if old := fs.names[key]; old != nil {
		old.named = false
	}
	n.key, n.named = key, true
	fs.names[key] = n
}

func (fs *FS) unnameLocked(n *node) {
	if n.named {
		delete(fs.names, n.key)
		n.named = false
	}
}

// dropLocked ends a node without handles.
func (fs *FS) dropLocked(n *node) {
	fs.unnameLocked(n)
	delete(fs.nodes, n.id)
}

// attrLocked describes a node, or one file of it.
func (n *node) attrLocked(h *handle, out *fuse.Attr) {
	if h == nil {
		h = n.youngestLocked()
	}
	size := uint64(0)
	if h != nil {
		size = uint64(h.size.Load())
	}
	*out = fuse.Attr{
		Ino: n.id, Size: size, Blocks: (size + 511) / 512, Blksize: 4096,
		Mode: syscall.S_IFREG | n.mode, Nlink: 1,
		Owner: fuse.Owner{Uid: n.key.uid, Gid: n.gid},
	}
	if !n.named {
		out.Nlink = 0
	}
	out.SetTimes(&n.mtime, &n.mtime, &n.mtime)
}

// youngestLocked is the file that was opened for writing last: what a reader of
// the name sees.
func (n *node) youngestLocked() *handle {
	for i := len(n.handles) - 1; i >= 0; i-- {
		if n.handles[i].writer {
			return n.handles[i]
		}
	}
	return nil
}
