package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// The cancel channels of requests are not looked at: an interrupted FLUSH must
// stage all the same, and EINTR from close(2) would leave a writer not knowing
// whether its messages are safe (F6).

// Create makes a file under a name.
func (fs *FS) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	switch {
	case inStatus(in.NodeId):
		return fuse.EACCES
	case len(name) > maxName:
		return fuse.Status(syscall.ENAMETOOLONG)
	}
	if h := fs.openedBefore(&in.InHeader); h != nil {
		fs.answerCreate(h, out)
		return fuse.OK
	}
	if fs.answeredBefore(&in.InHeader) {
		return fuse.EIO
	}
	// Refused here a writer notices; errors of close are lost on shells.
	if err := fs.admit(in.Uid, in.NodeId); err != nil {
		return fs.status(err)
	}
	p := fs.processOf(in.Pid)
	by := fs.openerOf(&in.InHeader, p)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	h, err := fs.createLocked(in, name)
	if err != nil {
		return fs.status(err)
	}
	h.file.opener = by
	h.process = p
	fs.outcomeLocked(in.Unique, 0)
	h.answerCreateLocked(out)
	return fuse.OK
}

func (fs *FS) answerCreate(h *handle, out *fuse.CreateOut) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	h.answerCreateLocked(out)
}

func (h *handle) answerCreateLocked(out *fuse.CreateOut) {
	out.NodeId, out.Fh, out.OpenFlags = h.node.id, h.fh, fuse.FOPEN_DIRECT_IO
	h.node.attrLocked(h.file, &out.Attr)
	// Programs look at what they have just made. Whoever else opens the name
	// looks it up, and gets the attributes anew.
	out.SetAttrTimeout(fileTimeout)
}

func (fs *FS) createLocked(in *fuse.CreateIn, name string) (*handle, error) {
	d, err := fs.changeableLocked(&in.InHeader)
	if err != nil {
		return nil, err
	}
	if d.subLocked(name) != nil || d == fs.root && name == statusDir {
		return nil, syscall.EISDIR
	}
	n := fs.findLocked(&in.Caller, d, name)
	if n != nil && (in.Flags&syscall.O_EXCL != 0 || n.held != nil) {
		return nil, syscall.EEXIST // the kernel has looked it up: it is new
	}
	held := isHeld(name)
	files := int64(1)
	if held {
		files++ // it stays when the handle goes
	}
	if err := fs.usage.take(in.Uid, holding{files: files}); err != nil {
		return nil, err
	}
	key := nameKey{in.Uid, name}
	attr := &fuse.Attr{Mode: in.Mode &^ in.Umask, Owner: in.Owner}
	r := d.routeLocked()
	n = fs.newNodeLocked(fs.newNodeID(r), d, key, attr)
	fs.nameLocked(n, d, key)
	f := fs.newFile(in.Uid, r, d.pathLocked(name))
	if held {
		f.held = true
		fs.holdLocked(n, f)
	}
	return fs.openLocked(n, f, &in.InHeader, true), nil
}

// changeableLocked returns the directory of a request that makes something in it.
func (fs *FS) changeableLocked(in *fuse.InHeader) (*dir, error) {
	if fs.draining {
		return nil, errDraining
	}
	d, err := fs.dirLocked(in.NodeId)
	if err != nil {
		return nil, err
	}
	if d.routeLocked().isGone() {
		return nil, syscall.ENOENT // as in a directory that is removed
	}
	return d, d.mayUseLocked(&in.Caller, mayWrite)
}

// Open makes a file of its own, or joins the held file. For reading only, it joins
// the file that was opened last.
func (fs *FS) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.open(in, out)
	}
	writer := in.Flags&syscall.O_ACCMODE != syscall.O_RDONLY
	if h := fs.openedBefore(&in.InHeader); h != nil {
		return fs.finishOpen(h, in, out)
	}
	if fs.answeredBefore(&in.InHeader) {
		return fuse.EIO
	}
	var p process
	var by opener
	if writer {
		if err := fs.admit(in.Uid, in.NodeId); err != nil {
			return fs.status(err)
		}
		p = fs.processOf(in.Pid)
		by = fs.openerOf(&in.InHeader, p)
	}
	fs.mu.Lock()
	n, f, err := fs.openableLocked(in, writer)
	if err == nil {
		err = fs.usage.take(in.Uid, holding{files: 1})
	}
	if err != nil {
		if n != nil {
			fs.dropIfEndedLocked(n) // if it was made for this request
		}
		fs.mu.Unlock()
		return fs.status(err)
	}
	h := fs.openLocked(n, f, &in.InHeader, writer)
	h.process = p
	if writer && n.held != f {
		f.opener = by
	}
	fs.mu.Unlock()
	return fs.finishOpen(h, in, out)
}

// finishOpen truncates a held file, if that was asked for. Nobody else writes to
// it before the answer: the kernel locks the inode.
func (fs *FS) finishOpen(h *handle, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	fs.mu.Lock()
	shared := h.node.held == h.file
	fs.mu.Unlock()
	out.Fh, out.OpenFlags = h.fh, fuse.FOPEN_DIRECT_IO
	if shared && h.writer && in.Flags&syscall.O_TRUNC != 0 && !fs.answeredBefore(&in.InHeader) {
		if err := fs.truncate(in.Unique, h.file, 0); err != nil {
			fs.release(h)
			return fs.status(err)
		}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.outcomeLocked(in.Unique, 0)
	return fuse.OK
}

// openableLocked returns the node and the file that an OPEN gets.
func (fs *FS) openableLocked(in *fuse.OpenIn, writer bool) (*node, *file, error) {
	if fs.draining && writer {
		return nil, nil, errDraining
	}
	n := fs.nodes[in.NodeId]
	own := n != nil && n.key.uid == in.Uid
	switch {
	case fs.dirs[in.NodeId] != nil:
		return nil, nil, syscall.EISDIR
	case own && n.held != nil:
		return n, n.held, nil
	case !writer && (!own || !n.isOpenLocked(fs.now())):
		return nil, nil, syscall.ENOENT
	case !writer:
		return n, n.youngestLocked(), nil
	case n == nil:
		// Between the LOOKUP and this request the last handle was released.
		// ESTALE would reach the writer, so it gets a fresh file; only its name
		// is not known any more.
		n = fs.namelessLocked(in.NodeId, &in.InHeader, fs.routeOfNodeLocked(in.NodeId))
	case !own:
		// Another user came by. The kernel's number for it stays the other's;
		// requests with a handle find the right node.
		r := n.dir.routeLocked()
		n = fs.namelessLocked(fs.newNodeID(r), &in.InHeader, r)
	}
	return n, fs.newFile(in.Uid, n.dir.routeLocked(), n.dir.pathLocked(n.key.name)), nil
}

func (fs *FS) namelessLocked(id uint64, in *fuse.InHeader, r *route) *node {
	return fs.newNodeLocked(id, r.dir, nameKey{uid: in.Uid}, &fuse.Attr{Mode: 0o600, Owner: in.Owner})
}

// Write stores data in memory.
func (fs *FS) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if inStatus(in.NodeId) {
		return fs.tree.write(in, data)
	}
	if n, done := fs.doneBefore(&in.InHeader); done {
		return uint32(n), fuse.OK
	}
	h, err := fs.writerHandle(in.Fh)
	if err == nil {
		h.flushed.Store(0)
		err = fs.write(h.file, chunk{data, int64(in.Offset), in.Flags&syscall.O_APPEND != 0, in.Pid, in.Unique})
	}
	if err != nil {
		return 0, fs.status(err)
	}
	return uint32(len(data)), fuse.OK
}

// Read returns what was written, as long as somebody has it open.
func (fs *FS) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	if inStatus(in.NodeId) {
		return fs.tree.read(in, len(buf))
	}
	h := fs.handle(in.Fh)
	if h == nil {
		return nil, fuse.EBADF
	}
	n, err := fs.read(in.Unique, h.file, buf, int64(in.Offset))
	if err != nil {
		return nil, fs.status(err)
	}
	return fuse.ReadResultData(buf[:n]), fuse.OK
}

// part returns at most n bytes of b from offset on.
func part(b []byte, offset uint64, n int) []byte {
	if offset >= uint64(len(b)) {
		return nil
	}
	b = b[offset:]
	return b[:min(n, len(b))]
}

// Flush comes at each close of each descriptor of the file. See the package
// document. The name is free for others from then on.
func (fs *FS) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.flush(in)
	}
	h, err := fs.writerHandle(in.Fh)
	if err != nil {
		return fuse.OK // of a reader
	}
	if _, done := fs.doneBefore(&in.InHeader); done {
		return fuse.OK
	}
	fs.noteEnding(h.file, &in.InHeader)
	if err := fs.stageNew(in.Unique, h.file, true); err != nil {
		fs.errors.Add(1)
		return fs.status(err)
	}
	h.flushed.Store(fs.now().UnixNano())
	return fuse.OK
}

// noteEnding notes that the process that wrote last to a file, which is a message
// as a whole, is ended by a signal: what it wrote is not the whole.
func (fs *FS) noteEnding(f *file, in *fuse.InHeader) {
	if !f.route.format().Whole() {
		return
	}
	switch fs.endingOf(in.Pid, in.Uid) {
	case endingUnknown:
		fs.unknown.Add(1)
	case endingKilled:
		if !fs.lock(in.Unique, f) {
			return
		}
		defer fs.unlock(f)
		// A child that was killed may have inherited the descriptor and no
		// more. A thread that is gone was one of the process that dies.
		last := fs.processOf(f.writer)
		if f.killed || f.held || f.end() == 0 || last != 0 && last != fs.processOf(in.Pid) {
			return
		}
		f.killed, f.dirty, f.changed = true, true, 0
	}
}

// Fsync promises as much as Flush, but is no close.
func (fs *FS) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	h, err := fs.writerHandle(in.Fh)
	if err != nil {
		return fuse.OK
	}
	if err := fs.stageNew(in.Unique, h.file, false); err != nil {
		fs.errors.Add(1)
		return fs.status(err)
	}
	return fuse.OK
}

// Release comes once, after the last close, and late: close(2) does not wait
// for it. It cannot fail.
func (fs *FS) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	if inStatus(in.NodeId) {
		fs.tree.release(in.Fh)
	} else if h := fs.handle(in.Fh); h != nil {
		fs.release(h)
	}
}

func (fs *FS) release(h *handle) {
	f := h.file
	fs.mu.Lock()
	f.handles--
	if h.writer {
		f.writers--
	}
	last := h.writer && f.writers == 0
	fs.mu.Unlock()
	if last {
		fs.finish(f)
	} else {
		fs.letGo(f)
	}
	fs.mu.Lock()
	fs.closeLocked(h)
	fs.mu.Unlock()
	fs.forgetIfEnded(f)
}
