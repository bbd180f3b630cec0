package fs

import (
	"cmp"
	"errors"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"spoolfs/fs/shm"
	"spoolfs/queue"
)

// listing is what an open directory shows. The cookie of an entry is its inode
// number, by which it is sorted, so that a listing goes on where it was whatever
// has come or gone.
type listing struct {
	entries []fuse.DirEntry
	uid     uint32
	holds   holding // by the user
}

// entryBytes is what an entry of a listing takes besides its name.
const entryBytes = 48

func newListing(uid uint32, entries []fuse.DirEntry) listing {
	slices.SortFunc(entries, func(a, b fuse.DirEntry) int { return cmp.Compare(a.Ino, b.Ino) })
	l := listing{entries, uid, holding{files: 1}}
	for _, e := range entries {
		l.holds.bytes += entryBytes + int64(len(e.Name))
	}
	return l
}

// OpenDir takes the listing.
func (fs *FS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.openDir(in, out)
	}
	settleDoubts(fs.doubtsIn(in))
	fs.mu.Lock()
	d, err := fs.dirLocked(in.NodeId)
	if err == nil {
		err = d.mayUseLocked(&in.Caller, mayRead)
	}
	var entries []fuse.DirEntry
	if err == nil {
		entries = fs.listLocked(d, in.Uid)
	}
	fs.mu.Unlock()
	if err != nil {
		return fs.status(err)
	}
	list := newListing(in.Uid, entries)
	if err := fs.usage.take(list.uid, list.holds); err != nil {
		return fs.status(err)
	}
	out.Fh = in.Unique &^ shm.Resent
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.listings[out.Fh] = list
	return fuse.OK
}

// maxDoubts bounds what a listing asks about names that are being closed.
const maxDoubts = 100

// doubtsIn returns doubts about names of the caller in a directory.
func (fs *FS) doubtsIn(in *fuse.OpenIn) []doubt {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	d := fs.dirs[in.NodeId]
	if d == nil {
		return nil
	}
	var ds []doubt
	for key, n := range d.nodes {
		if key.uid == in.Uid && len(ds) < maxDoubts {
			ds = append(ds, fs.doubtsLocked(n)...)
		}
	}
	return ds
}

// listLocked lists what a user sees in a directory, but for what is hidden.
func (fs *FS) listLocked(d *dir, uid uint32) []fuse.DirEntry {
	var list []fuse.DirEntry
	now := fs.now()
	if d == fs.root {
		list = append(list, fuse.DirEntry{Name: statusDir, Ino: statusNode, Mode: syscall.S_IFDIR})
	}
	for name, top := range d.tops {
		list = append(list, fuse.DirEntry{Name: name, Ino: top.id, Mode: syscall.S_IFDIR})
	}
	for name, sub := range d.dirs {
		if !sub.standing && d.tops[name] == nil {
			list = append(list, fuse.DirEntry{Name: name, Ino: sub.id, Mode: syscall.S_IFDIR})
		}
	}
	for key, n := range d.nodes {
		if key.uid == uid && d.subLocked(key.name) == nil && n.isOpenLocked(now) {
			list = append(list, fuse.DirEntry{Name: key.name, Ino: n.id, Mode: syscall.S_IFREG})
		}
	}
	return list
}

// ReadDir hands out a part of the listing. The entries "." and ".." have the
// cookies 1 and 2 and come first; the others have their inode number plus 2.
func (fs *FS) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.readDir(in, out)
	}
	list, err := fs.listingOf(in)
	if err != nil {
		return fs.status(err)
	}
	for i, name := range []string{".", ".."} {
		cookie := uint64(i + 1)
		if in.Offset < cookie && !out.AddDirEntry(fuse.DirEntry{
			Name: name, Ino: rootNode, Mode: syscall.S_IFDIR, Off: cookie,
		}) {
			return fuse.OK
		}
	}
	for _, e := range list {
		e.Off = e.Ino + 2
		if e.Off > in.Offset && !out.AddDirEntry(e) {
			break
		}
	}
	return fuse.OK
}

// listingOf returns what an open directory lists. One that was opened before this
// process took over is listed anew.
func (fs *FS) listingOf(in *fuse.ReadIn) ([]fuse.DirEntry, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if l, ok := fs.listings[in.Fh]; ok {
		return l.entries, nil
	}
	d, err := fs.dirLocked(in.NodeId)
	if err != nil {
		return nil, err
	}
	l := newListing(in.Uid, fs.listLocked(d, in.Uid))
	fs.usage.force(l.uid, l.holds)
	fs.listings[in.Fh] = l
	return l.entries, nil
}

// ReleaseDir forgets the listing.
func (fs *FS) ReleaseDir(in *fuse.ReleaseIn) {
	if inStatus(in.NodeId) {
		fs.tree.release(in.Fh)
		return
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	list := fs.listings[in.Fh]
	delete(fs.listings, in.Fh)
	fs.usage.give(list.uid, list.holds)
}

// FsyncDir has nothing to do: the names of held files and directories are stored
// with each change.
func (fs *FS) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }

// Mkdir makes a directory, which stays until its Rmdir. Files in it go where
// those of its parent go.
func (fs *FS) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	if len(name) > maxName {
		return fuse.Status(syscall.ENAMETOOLONG)
	}
	if inStatus(in.NodeId) {
		return fuse.EPERM
	}
	if d := fs.madeBefore(in, name); d != nil {
		return fs.finishMkdir(in, d, out)
	}
	if fs.answeredBefore(&in.InHeader) {
		return fuse.EIO
	}
	fs.mu.Lock()
	d, err := fs.mkdirLocked(in, name)
	if err != nil {
		fs.mu.Unlock()
		return fs.status(err)
	}
	fs.mu.Unlock()
	return fs.finishMkdir(in, d, out)
}

// finishMkdir stores a directory that is made.
func (fs *FS) finishMkdir(in *fuse.MkdirIn, d *dir, out *fuse.EntryOut) fuse.Status {
	fs.mu.Lock()
	d.entryLocked(out)
	mark, route := d.markLocked(), d.routeLocked()
	fs.mu.Unlock()
	err := fs.patiently(in.Unique, func() error { return d.storeMark(route.queue, mark) })
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err != nil {
		fs.dropDirLocked(d)
		return fs.status(err)
	}
	fs.outcomeLocked(in.Unique, d.id)
	return fuse.OK
}

func (fs *FS) mkdirLocked(in *fuse.MkdirIn, name string) (*dir, error) {
	parent, err := fs.changeableLocked(&in.InHeader)
	if err != nil {
		return nil, err
	}
	if parent.subLocked(name) != nil || parent == fs.root && name == statusDir || fs.findLocked(&in.Caller, parent, name) != nil {
		return nil, syscall.EEXIST
	}
	if len(parent.pathLocked(name)) > unix.PathMax {
		return nil, syscall.ENAMETOOLONG
	}
	if err := fs.usage.take(in.Uid, holding{files: 1}); err != nil {
		return nil, err
	}
	d := fs.addDirLocked(parent, name, &fuse.Attr{Mode: in.Mode &^ in.Umask, Owner: in.Owner})
	d.made = in.Unique &^ shm.Resent
	return d, nil
}

// storeMark keeps a directory in the store, under the given mark.
func (d *dir) storeMark(r *queue.Route, mark string) error {
	d.marking.Lock()
	defer d.marking.Unlock()
	if d.mark == nil {
		d.mark = r.NewStage(d.markID, queue.StageInfo{File: mark, UID: d.uid, Held: true})
	}
	d.mark.SetInfo(mark, true)
	return d.mark.Put(0, nil)
}

// Rmdir removes an empty directory of a user.
func (fs *FS) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	if inStatus(in.NodeId) || in.NodeId == rootNode && name == statusDir {
		return fuse.EPERM
	}
	if _, done := fs.doneBefore(in); done {
		return fuse.OK
	}
	fs.mu.Lock()
	d, err := fs.rmdirLocked(in, name)
	fs.mu.Unlock()
	if err != nil {
		return fs.status(unlessResent(in, err))
	}
	unique := in.Unique
	// The kernel keeps others out of it meanwhile.
	return fs.status(fs.patiently(unique, func() error { return fs.removeDir(d, unique) }))
}

func (fs *FS) rmdirLocked(in *fuse.InHeader, name string) (*dir, error) {
	parent, err := fs.dirLocked(in.NodeId)
	if err != nil {
		return nil, err
	}
	d := parent.subLocked(name)
	switch {
	case d != nil:
	case fs.findLocked(&in.Caller, parent, name) != nil:
		return nil, syscall.ENOTDIR
	default:
		return nil, syscall.ENOENT
	}
	if err := d.mayMoveLocked(&in.Caller); err != nil {
		return nil, err
	}
	if !fs.isEmptyLocked(d) {
		return nil, syscall.ENOTEMPTY
	}
	return d, nil
}

// removeDir removes a directory from the store and from the tree.
func (fs *FS) removeDir(d *dir, unique uint64) error {
	if err := d.dropMark(); err != nil {
		return err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.dropDirLocked(d)
	fs.outcomeLocked(unique, 0)
	return nil
}

// dropMark takes a directory out of the store.
func (d *dir) dropMark() error {
	d.marking.Lock()
	defer d.marking.Unlock()
	if d.mark == nil {
		return nil
	}
	return d.mark.Discard()
}

// dirMove is where a directory is to go.
type dirMove struct {
	unique uint64
	caller fuse.Caller
	flags  uint32
	name   string
}

// renameDir moves a directory with all that is in it.
func (fs *FS) renameDir(d, to *dir, m *dirMove) error {
	fs.mu.Lock()
	over, err := fs.planDirLocked(d, to, m)
	fs.mu.Unlock()
	if err != nil || over == d {
		return err
	}
	if over != nil {
		if err := fs.removeDir(over, 0); err != nil {
			return err
		}
	}
	fs.mu.Lock()
	from, name := d.parent, d.name
	d.moved = m.unique &^ shm.Resent
	fs.placeDirLocked(d, to, m.name)
	fs.mu.Unlock()
	err = fs.restamp(d)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err != nil {
		d.moved = 0
		fs.placeDirLocked(d, from, name)
		return err
	}
	fs.outcomeLocked(m.unique, 0)
	return nil
}

// planDirLocked checks that a directory may move, and returns the one that it
// replaces; itself if there is nothing to do.
func (fs *FS) planDirLocked(d, to *dir, m *dirMove) (*dir, error) {
	c := &m.caller
	if err := d.mayMoveLocked(c); err != nil {
		return nil, err
	}
	over := to.subLocked(m.name)
	switch {
	case over == d:
		return d, nil
	case to == fs.root && m.name == statusDir:
		return nil, syscall.EPERM
	case to.isWithinLocked(d):
		return nil, syscall.EINVAL
	case to.routeLocked() != d.routeLocked():
		return nil, errOtherRoute
	case over != nil && over.isTop():
		return nil, syscall.EBUSY
	case len(to.pathLocked(m.name))+d.depthLocked() > unix.PathMax:
		return nil, syscall.ENAMETOOLONG
	case over != nil && m.flags&unix.RENAME_NOREPLACE != 0:
		return nil, syscall.EEXIST
	case over == nil && fs.findLocked(c, to, m.name) != nil:
		return nil, syscall.ENOTDIR
	case over == nil:
		return nil, nil
	case !fs.isEmptyLocked(over):
		return nil, syscall.ENOTEMPTY
	}
	return over, over.mayMoveLocked(c)
}

func (fs *FS) placeDirLocked(d, to *dir, name string) {
	delete(d.parent.dirs, d.name)
	d.parent.mtime = fs.now()
	fs.noteDirLocked(d.parent)
	d.parent, d.name = to, name
	if to.dirs == nil {
		to.dirs = map[string]*dir{}
	}
	to.dirs[name] = d
	to.mtime = fs.now()
	fs.noteDirLocked(d)
	fs.noteDirLocked(to)
}

// restamp stores the new paths of a directory that has moved and of all that is
// held in it. If it fails, or the process ends, in the midst of that, the store
// has some under the old path.
func (fs *FS) restamp(d *dir) error {
	fs.mu.Lock()
	mark, route := d.markLocked(), d.routeLocked()
	labels := map[*file]string{}
	for key, n := range d.nodes {
		if n.held != nil {
			labels[n.held] = d.pathLocked(key.name)
		}
	}
	subs := make([]*dir, 0, len(d.dirs))
	for _, sub := range d.dirs {
		subs = append(subs, sub)
	}
	fs.mu.Unlock()
	if err := d.storeMark(route.queue, mark); err != nil {
		return err
	}
	for f, label := range labels {
		// What has been renamed or unlinked meanwhile has no label any more.
		if err := fs.relabel(f, label); err != nil && !errors.Is(err, syscall.ENOENT) {
			return err
		}
	}
	for _, sub := range subs {
		if err := fs.restamp(sub); err != nil {
			return err
		}
	}
	return nil
}
