package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"spoolfs/fs/shm"
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
	case in.NodeId == rootNode && name == statusDir:
		return fs.tree.lookupRoot(out)
	case len(name) > maxName:
		return fuse.Status(syscall.ENAMETOOLONG)
	}
	doubts, st := fs.lookupName(in, name, out)
	if st == fuse.ENOENT && settleDoubts(doubts) {
		_, st = fs.lookupName(in, name, out)
	}
	return st
}

// lookupName finds a name. If it does not, it returns the doubts about that.
func (fs *FS) lookupName(in *fuse.InHeader, name string, out *fuse.EntryOut) ([]doubt, fuse.Status) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	d, err := fs.dirLocked(in.NodeId)
	if err == nil {
		err = d.mayUseLocked(&in.Caller, maySearch)
	}
	if err != nil {
		return nil, fs.status(err)
	}
	// A directory beats a name that somebody has for himself.
	if sub := d.subLocked(name); sub != nil {
		sub.entryLocked(out)
		return nil, fuse.OK
	}
	n := fs.findLocked(&in.Caller, d, name)
	if n == nil {
		return fs.doubtsLocked(d.nodes[nameKey{in.Uid, name}]), fuse.ENOENT
	}
	out.NodeId = n.id
	n.attrLocked(nil, &out.Attr)
	return nil, fuse.OK
}

// Forget drops the snapshot of a status file. Nodes of writers do not count
// their lookups.
func (fs *FS) Forget(id, _ uint64) {
	if inStatus(id) {
		fs.tree.forget(id)
	}
}

// Unlink takes a name away. A held file goes. Of others, what no close or fsync
// has promised yet is dropped if the process that unlinks has opened it; all else
// goes on without a name and is published.
func (fs *FS) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.unlink(in, name)
	}
	if _, done := fs.doneBefore(in); done {
		return fuse.OK
	}
	p := fs.processOf(in.Pid)
	fs.mu.Lock()
	n, err := fs.unlinkLocked(in, name)
	if err != nil {
		fs.mu.Unlock()
		return fs.status(unlessResent(in, err))
	}
	d, key, held := n.dir, n.key, n.held
	fs.unnameLocked(n)
	fs.dropIfEndedLocked(n)
	if held == nil {
		fs.abandonLocked(n, p)
		fs.outcomeLocked(in.Unique, 0)
		fs.mu.Unlock()
		return fuse.OK
	}
	fs.noteGoneLocked(held, true)
	fs.mu.Unlock()
	unique := in.Unique
	return fs.status(fs.patiently(unique, func() error {
		defer fs.forgetIfEnded(held)
		return fs.unlinkHeld(n, d, key, unique)
	}))
}

// abandonLocked drops what is not promised of the files of a node that a process
// has opened.
func (fs *FS) abandonLocked(n *node, p process) {
	for _, h := range n.handles {
		if h.writer && h.process == p && p != 0 {
			h.file.abandoned.Store(true)
			fs.noteGoneLocked(h.file, true)
		}
	}
}

// unlinkLocked returns the node that a request may unlink.
func (fs *FS) unlinkLocked(in *fuse.InHeader, name string) (*node, error) {
	d, err := fs.dirLocked(in.NodeId)
	if err != nil {
		return nil, err
	}
	if err := d.mayUseLocked(&in.Caller, mayWrite); err != nil {
		return nil, err
	}
	if d.subLocked(name) != nil {
		return nil, syscall.EISDIR
	}
	n := fs.findLocked(&in.Caller, d, name)
	if n == nil {
		return nil, syscall.ENOENT
	}
	return n, nil
}

// unlinkHeld discards a held file whose name has been taken away. If that fails
// it has its name again.
func (fs *FS) unlinkHeld(n *node, d *dir, key nameKey, unique uint64) error {
	err := fs.discard(n.held)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err != nil && d.nodes[key] == nil {
		fs.nodes[n.id] = n
		fs.nameLocked(n, d, key)
		fs.noteGoneLocked(n.held, false)
		return err
	}
	n.held.named = false
	delete(fs.held, n)
	fs.outcomeLocked(unique, 0)
	fs.usage.give(key.uid, holding{files: 1})
	fs.dropIfEndedLocked(n)
	return err
}

// move is a rename of a node that has been found to be allowed.
type move struct {
	node  *node
	held  *file // of the node, or nil
	dir   *dir
	key   nameKey
	label string

	unique uint64 // of the request

	// process has a grace second for the new name.
	process process

	// done says that the node has its new name, and replaced is what had that
	// and was held.
	done     bool
	replaced *node
}

// Rename changes the name of what is open or held. What had the new name goes on
// without one: nothing that was closed is taken back. A held file that gets an
// ordinary name is published.
func (fs *FS) Rename(_ <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	if inStatus(in.NodeId) || inStatus(in.Newdir) {
		return fs.tree.rename(in, oldName, newName)
	}
	switch {
	case len(newName) > maxName:
		return fuse.Status(syscall.ENAMETOOLONG)
	case in.Flags&^unix.RENAME_NOREPLACE != 0:
		return fuse.EINVAL
	}
	if _, done := fs.doneBefore(&in.InHeader); done {
		return fuse.OK
	}
	fs.mu.Lock()
	from, to, err := fs.renameDirsLocked(in)
	if d := fs.movedBeforeLocked(in, to, newName); d != nil {
		fs.mu.Unlock()
		return fs.status(fs.patiently(in.Unique, func() error { return fs.restamp(d) }))
	}
	var d *dir
	var m *move
	if err == nil {
		if d = from.subLocked(oldName); d == nil {
			m, err = fs.planLocked(in, from, to, oldName, newName)
		}
	}
	fs.mu.Unlock()
	if d != nil {
		m := &dirMove{in.Unique, in.Caller, in.Flags, newName}
		return fs.status(fs.patiently(in.Unique, func() error { return fs.renameDir(d, to, m) }))
	}
	if err != nil || m == nil {
		return fs.status(unlessResent(&in.InHeader, err))
	}
	m.unique, m.process = in.Unique, fs.processOf(in.Pid)
	if m.held == nil {
		return fs.status(fs.rename(m))
	}
	return fs.status(fs.patiently(in.Unique, func() error { return fs.rename(m) }))
}

// renameDirsLocked returns the directories of a rename.
func (fs *FS) renameDirsLocked(in *fuse.RenameIn) (from, to *dir, err error) {
	if from, err = fs.dirLocked(in.NodeId); err != nil {
		return nil, nil, err
	}
	if to, err = fs.dirLocked(in.Newdir); err != nil {
		return nil, nil, err
	}
	for _, d := range []*dir{from, to} {
		if err := d.mayUseLocked(&in.Caller, mayWrite); err != nil {
			return nil, nil, err
		}
	}
	return from, to, nil
}

// planLocked says what a rename has to do; nil if it is nothing.
func (fs *FS) planLocked(in *fuse.RenameIn, from, to *dir, oldName, newName string) (*move, error) {
	n := fs.findLocked(&in.Caller, from, oldName)
	if n == nil {
		return nil, syscall.ENOENT
	}
	if to.subLocked(newName) != nil || to == fs.root && newName == statusDir {
		return nil, syscall.EISDIR
	}
	if from.routeLocked() != to.routeLocked() {
		return nil, errOtherRoute
	}
	target := fs.findLocked(&in.Caller, to, newName)
	switch {
	case target == n:
		return nil, nil
	case target != nil && in.Flags&unix.RENAME_NOREPLACE != 0:
		return nil, syscall.EEXIST
	}
	return &move{node: n, held: n.held, dir: to, key: nameKey{in.Uid, newName}, label: to.pathLocked(newName)}, nil
}

// rename moves a node.
func (fs *FS) rename(m *move) error {
	var err error
	switch {
	case m.held == nil:
	case isHeld(m.key.name):
		err = fs.relabel(m.held, m.label)
	default:
		err = fs.publish(m.held, m)
	}
	if err != nil {
		fs.letGo(m.held)
		return err
	}
	fs.mu.Lock()
	fs.moveLocked(m)
	fs.mu.Unlock()
	if m.held != nil {
		fs.forgetIfEnded(m.held)
	}
	if m.replaced != nil {
		defer fs.forgetIfEnded(m.replaced.held)
		if err := fs.unlinkHeld(m.replaced, m.dir, m.key, 0); err != nil {
			// It is there again after a restart, and set aside then.
			fs.lost(m.replaced.held, err)
		}
	}
	return nil
}

// moveLocked gives the node its new name, which the process may use for a grace
// second.
func (fs *FS) moveLocked(m *move) {
	if m.done {
		return // by publish
	}
	m.done = true
	fs.nodes[m.node.id] = m.node // it may have ended meanwhile
	if old := m.dir.nodes[m.key]; old != nil && old.held != nil {
		m.replaced = old
		fs.noteGoneLocked(old.held, true)
	}
	fs.nameLocked(m.node, m.dir, m.key)
	fs.graceLocked(m.node, m.process)
	fs.dropIfEndedLocked(m.node) // if we do not know which process it is
	if m.held != nil {
		fs.noted.change.Delete(shm.Key{Kind: kindIntent, ID: m.held.id})
	}
	fs.outcomeLocked(m.unique, 0)
}

// Mknod makes nothing: what is no file is no message. The rest is refused too,
// each with the errno that programs expect.
func (fs *FS) Mknod(<-chan struct{}, *fuse.MknodIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

// Link is refused: a file has one name, for as long as it has one.
func (fs *FS) Link(<-chan struct{}, *fuse.LinkIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

// Symlink is refused.
func (fs *FS) Symlink(<-chan struct{}, *fuse.InHeader, string, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

// Tmpfile is refused, so that programs make a temporary name.
func (fs *FS) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.Status(syscall.EOPNOTSUPP)
}
