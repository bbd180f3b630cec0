package fs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/shm"
)

// snapshot is one moment of a file of the tree.
type snapshot struct {
	content []byte
	attr    fuse.Attr
	data    shm.Data // the content, where it is that of a handle in the shared memory
}

// snapshot makes a file of content.
func (t *statusTree) snapshot(id statusID, content []byte, at time.Time) *snapshot {
	size := uint64(len(content))
	s := &snapshot{content: content, attr: fuse.Attr{
		Ino: id.ino(), Size: size, Blocks: (size + 511) / 512, Blksize: 4096,
		Mode: t.statusMode(id), Nlink: 1,
	}}
	if !t.isPublic(id) {
		s.attr.Gid = t.fs.tuned.Load().StatusGroup
	}
	s.attr.SetTimes(&at, &at, &at)
	return s
}

func (s *snapshot) entry(id statusID) statusEntry {
	return statusEntry{id: id, attr: s.attr, keep: dirTimeout}
}

// flat is the flat file of an id.
func (t *statusTree) flat(id statusID) StatusFile { return t.files[id.route] }

// findFlat takes a snapshot of a flat file.
func (t *statusTree) findFlat(name string) (statusEntry, error) {
	for i, f := range t.files {
		if f.Name == name {
			content := f.Content()
			t.mu.Lock()
			defer t.mu.Unlock()
			id := statusID{kind: kindFlat, route: uint16(i), number: t.fs.memory.NextSnapshot() % maxNumber}
			s := t.snapshot(id, content, time.Now())
			t.snapshots[id.node()] = s
			return s.entry(id), nil
		}
	}
	return t.findPage(name)
}

func (t *statusTree) flatEntry(id statusID) (statusEntry, error) {
	s, err := t.flatSnapshot(id)
	if err != nil {
		return statusEntry{}, err
	}
	return s.entry(id), nil
}

// flatSnapshot returns the snapshot of a flat file. One that a former process has
// taken is taken anew. A page cannot be, since its node does not tell its key: with
// ESTALE the kernel looks for its name again.
func (t *statusTree) flatSnapshot(id statusID) (*snapshot, error) {
	t.mu.Lock()
	s := t.snapshots[id.node()]
	t.mu.Unlock()
	switch {
	case s != nil:
		return s, nil
	case id.kind == kindPage:
		return nil, syscall.ESTALE
	case int(id.route) >= len(t.files) || !t.fs.tookOver:
		return nil, syscall.ENOENT
	}
	s = t.snapshot(id, t.flat(id).Content(), time.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.snapshots[id.node()] = s
	return s, nil
}

// forget drops the snapshot of a flat file. Other nodes have none.
func (t *statusTree) forget(node uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.snapshots, node)
}

func (t *statusTree) open(in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	id := parseStatusID(in.NodeId)
	if err := t.mayUse(id, &in.Caller); err != nil {
		return t.fs.status(err)
	}
	if in.Flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		if id.kind != kindControl && !t.takesWrites(id) {
			return fuse.EACCES
		}
		out.OpenFlags = fuse.FOPEN_DIRECT_IO // each write is a command
	}
	out.Fh = in.Unique &^ shm.Resent
	s := t.openFile(out.Fh)
	if s == nil { // else a former process has opened it
		var err error
		s, err = patient(t.fs, in.Unique, func() (*snapshot, error) { return t.load(id) })
		if err != nil {
			return t.fs.status(err)
		}
		s = t.keep(out.Fh, id, s)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opened[out.Fh] = s
	if id.kind == kindPage { // it is for one handle
		delete(t.snapshots, id.node())
	}
	if h := t.newSink(id); h != nil && in.Flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		t.sinks[out.Fh] = h
	}
	return fuse.OK
}

// load returns what an open file reads.
func (t *statusTree) load(id statusID) (*snapshot, error) {
	switch {
	case id.kind == kindControl:
		return t.snapshot(id, t.help, t.began), nil
	case id.kind == kindOpenFile:
		return nil, syscall.EACCES
	case id.isMessage():
		return t.moment(id)
	}
	return t.flatSnapshot(id)
}

// openFile is what a handle reads; nil for a handle of a directory.
func (t *statusTree) openFile(fh uint64) *snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.opened[fh]
}

func (t *statusTree) read(in *fuse.ReadIn, n int) (fuse.ReadResult, fuse.Status) {
	s := t.openFile(in.Fh)
	if s == nil {
		var err error
		if s, err = t.reopen(in); err != nil {
			return nil, t.fs.status(err)
		}
	}
	return fuse.ReadResultData(part(s.content, in.Offset, n)), fuse.OK
}

// reopen opens a file again that was opened before this process took over and is
// not kept. The rest of a flat file would be that of another moment.
func (t *statusTree) reopen(in *fuse.ReadIn) (*snapshot, error) {
	if !t.fs.tookOver {
		return nil, syscall.EBADF
	}
	id := parseStatusID(in.NodeId)
	if id.kind == kindPage || id.kind == kindFlat && in.Offset > 0 {
		return nil, syscall.EIO
	}
	s, err := patient(t.fs, in.Unique, func() (*snapshot, error) { return t.load(id) })
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opened[in.Fh] = s
	return s, nil
}

// release ends a handle of a file or of a directory.
func (t *statusTree) release(fh uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unkeep(fh, t.opened[fh])
	delete(t.opened, fh)
	delete(t.sinks, fh)
	delete(t.dirs, fh)
}
