package fs

import (
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is what the kernel knows as an inode: the file or files that are open
// under a name, or a held file.
//
// It ends when its name is gone and the last handle is released. The name of a
// held file goes with a rename or unlink, that of others with the last handle or,
// for the processes that wrote the files, a grace second later.
type node struct {
	id uint64

	// The fields below are guarded by FS.mu.

	dir     *dir
	key     nameKey
	named   bool // key leads to this node
	owner   uint32
	gid     uint32
	mode    uint32
	mtime   time.Time
	touched int64     // when its times were set last, in nanoseconds
	size    uint64    // of the file that was released last
	handles []*handle // in the order of opening
	held    *file     // nil if each open for writing is a file of its own
	graces  []grace   // in the order of their ends
	noted   bool      // see noteNodeLocked
}

// grace lets a process use a name by path for a moment after it has closed the
// file: chmod, utimens, rename, unlink.
type grace struct {
	process process
	until   time.Time
}

// graceTime is how long. Programs that set the attributes of what they have
// written, or move it into place, do so at once.
const graceTime = time.Second

// maxGraces bounds the memory of a name that many processes write to in a
// second; the oldest go first.
const maxGraces = 64

// closedTime is how long after its last FLUSH a file is taken for closed, though
// the RELEASE has not come, unless its opener is seen to have another descriptor
// (a shell after "exec 7> f; echo >&7"). It comes within milliseconds, or, when the
// machine is very busy, within a tenth of a second (TestMount_ReleaseComesSoon).
// After this time somebody else must have inherited the descriptor.
const closedTime = 500 * time.Millisecond

// maxName is the longest file name in bytes, as on other file systems.
const maxName = 255

// findLocked returns the node of a name if the name exists for the caller.
func (fs *FS) findLocked(c *fuse.Caller, d *dir, name string) *node {
	n := d.nodes[nameKey{c.Uid, name}]
	if n == nil || n.isOpenLocked(fs.now()) || fs.hasGraceLocked(n, c.Pid) {
		return n
	}
	return nil
}

// isOpenLocked reports whether the name exists for all processes of its user. A
// name whose files have all been flushed since their last write does not: they
// are closed, only the RELEASE is on its way.
func (n *node) isOpenLocked(now time.Time) bool {
	if n.held != nil {
		return true
	}
	for _, h := range n.handles {
		if h.writer && !h.looksClosed(now) {
			return true
		}
	}
	return false
}

// doubt is a handle that was flushed and not released yet: it is being closed, or
// it has another descriptor.
type doubt struct {
	handle  *handle
	flushed int64
	ino     uint64
	name    string
}

// doubtsLocked returns the doubts about a name that does not look open.
func (fs *FS) doubtsLocked(n *node) []doubt {
	var ds []doubt
	if n != nil && n.named && !n.isOpenLocked(fs.now()) {
		for _, h := range n.handles {
			if h.writer && h.process != 0 {
				ds = append(ds, doubt{h, h.flushed.Load(), n.id, n.key.name})
			}
		}
	}
	return ds
}

// settleDoubts looks which handles their openers still have, and has them look
// open. It reports whether there are any.
func settleDoubts(ds []doubt) (open bool) {
	for _, d := range ds {
		if d.flushed != 0 && d.handle.process.hasOpen(d.ino, d.name) {
			// If it has been flushed again meanwhile, that may be the last one.
			open = d.handle.flushed.CompareAndSwap(d.flushed, 0) || open
		}
	}
	return open
}

// hasGraceLocked reports whether the name exists for the process of a thread
// since it has written one of the files.
func (fs *FS) hasGraceLocked(n *node, thread uint32) bool {
	if !n.hasWriterLocked() && len(n.graces) == 0 {
		return false
	}
	p := fs.processOf(thread)
	if p == 0 {
		return false
	}
	for _, h := range n.handles {
		if h.writer && h.process == p {
			return true
		}
	}
	now := fs.now()
	return slices.ContainsFunc(n.graces, func(g grace) bool { return g.process == p && now.Before(g.until) })
}

func (n *node) hasWriterLocked() bool {
	return slices.ContainsFunc(n.handles, func(h *handle) bool { return h.writer })
}

// graceLocked begins the grace second of a process for a name.
func (fs *FS) graceLocked(n *node, p process) {
	if p == 0 || !n.named || n.held != nil {
		return
	}
	g := grace{p, fs.now().Add(graceTime)}
	n.graces = slices.DeleteFunc(n.graces, func(o grace) bool { return o.process == p })
	if len(n.graces) == maxGraces {
		n.graces = n.graces[1:]
	}
	n.graces = append(n.graces, g)
	fs.noteNodeLocked(n)
	fs.expiries = append(fs.expiries, expiry{n, g.until})
}

// expiry says when to look whether a node has ended.
type expiry struct {
	node *node
	at   time.Time
}

// expireLocked ends the nodes whose grace second is over.
func (fs *FS) expireLocked() {
	now, i := fs.now(), 0
	for ; i < len(fs.expiries) && !now.Before(fs.expiries[i].at); i++ {
		n := fs.expiries[i].node
		n.graces = slices.DeleteFunc(n.graces, func(g grace) bool { return !now.Before(g.until) })
		fs.dropIfEndedLocked(n)
	}
	fs.expiries = slices.Delete(fs.expiries, 0, i)
}

func (fs *FS) newNodeLocked(id uint64, d *dir, key nameKey, attr *fuse.Attr) *node {
	n := &node{
		id: id, dir: d, key: key, mtime: fs.now(),
		owner: attr.Uid, gid: attr.Gid, mode: attr.Mode & 0o777,
	}
	fs.nodes[n.id] = n
	fs.noteNodeLocked(n)
	return n
}

// nameLocked lets the name lead to n. The node that had it goes on without.
func (fs *FS) nameLocked(n *node, d *dir, key nameKey) {
	fs.unnameLocked(n)
	if old := d.nodes[key]; old != nil {
		n.graces = old.leaveLocked(fs.now())
		fs.unnameLocked(old)
		fs.dropIfEndedLocked(old)
	}
	if len(n.graces) > 0 {
		fs.expiries = append(fs.expiries, expiry{n, fs.now().Add(graceTime)})
	}
	if d.nodes == nil {
		d.nodes = map[nameKey]*node{}
	}
	n.dir, n.key, n.named = d, key, true
	d.nodes[key] = n
	fs.noteNodeLocked(n)
}

// leaveLocked returns the grace seconds that a node leaves to the one that takes
// its name: those who have closed a file of the name may go on to use it.
func (n *node) leaveLocked(now time.Time) []grace {
	var graces []grace
	for _, g := range n.graces {
		if now.Before(g.until) {
			graces = append(graces, g)
		}
	}
	for _, h := range n.handles {
		if h.writer && h.process != 0 && h.looksClosed(now) {
			graces = append(graces, grace{h.process, now.Add(graceTime)})
		}
	}
	return graces[max(0, len(graces)-maxGraces):]
}

func (fs *FS) unnameLocked(n *node) {
	if n.named {
		delete(n.dir.nodes, n.key)
		n.named, n.graces = false, nil
		fs.noteNodeLocked(n)
	}
}

// dropIfEndedLocked ends a node that nobody can reach any more.
func (fs *FS) dropIfEndedLocked(n *node) {
	if len(n.handles) > 0 || n.named && (n.held != nil || len(n.graces) > 0) || fs.nodes[n.id] != n {
		return
	}
	if n.named && !fs.cannotPrune.Load() && fs.server.Load() != nil {
		fs.stale = append(fs.stale, n.id)
	}
	fs.unnameLocked(n)
	delete(fs.nodes, n.id)
	fs.noteNodeLocked(n)
}

// attrLocked describes a node, or one file of it.
func (n *node) attrLocked(f *file, out *fuse.Attr) {
	if f == nil {
		f = n.youngestLocked()
	}
	size, mtime := n.size, n.mtime
	if f != nil {
		size = uint64(f.size.Load())
		if at := f.modified.Load(); at != 0 {
			mtime = time.Unix(0, at)
		}
	}
	*out = fuse.Attr{
		Ino: n.id, Size: size, Blocks: (size + 511) / 512, Blksize: 4096,
		Mode: syscall.S_IFREG | n.mode, Nlink: 1,
		Owner: fuse.Owner{Uid: n.owner, Gid: n.gid},
	}
	if !n.named {
		out.Nlink = 0
	}
	out.SetTimes(&mtime, &mtime, &mtime)
}

// youngestLocked is what a reader of the name sees: the held file, or the one
// that was opened for writing last.
func (n *node) youngestLocked() *file {
	if n.held != nil {
		return n.held
	}
	for _, h := range slices.Backward(n.handles) {
		if h.writer {
			return h.file
		}
	}
	return nil
}
