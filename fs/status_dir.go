package fs

import (
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/shm"
)

// pager returns the next entries of a directory, for a request; none at the end.
type pager func(unique uint64) ([]fuse.DirEntry, error)

// statusListing is an open directory of the tree. It holds a page at a time: a
// listing starts at once and takes as much memory for ten million entries as for
// ten.
type statusListing struct {
	id    statusID
	begin func() pager

	mu   sync.Mutex
	next pager

	// page is what the last request may not have taken. Its first entry is the
	// one after the cookie at.
	page []fuse.DirEntry
	at   uint64
}

func (t *statusTree) openDir(in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	id := parseStatusID(in.NodeId)
	if err := t.mayUse(id, &in.Caller); err != nil {
		return t.fs.status(err)
	}
	begin := t.lister(id)
	if begin == nil {
		return fuse.ENOTDIR
	}
	out.Fh = in.Unique &^ shm.Resent
	t.keepListing(out.Fh, id, begin)
	return fuse.OK
}

func (t *statusTree) keepListing(fh uint64, id statusID, begin func() pager) *statusListing {
	d := &statusListing{id: id, begin: begin}
	d.rewind()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirs[fh] = d
	return d
}

// lister returns what begins a listing of a directory.
func (t *statusTree) lister(id statusID) func() pager {
	switch {
	case id.kind == kindRoot:
		return func() pager { return onePage(t.listRoot()) }
	case id.kind == kindRoutes:
		return func() pager { return onePage(t.listRoutes()) }
	case id.kind == kindRoute:
		return func() pager { return onePage(listRoute(id)) }
	case id.kind == kindOpenDir:
		return func() pager { return onePage(t.listUsers()) }
	case id.kind == kindUserDir:
		return func() pager { return onePage(t.listOpen(id)) }
	case id.holdsMessages():
		return func() pager { return t.listMessages(id) }
	}
	return nil
}

// onePage lists what is known already.
func onePage(list []fuse.DirEntry) pager {
	return func(uint64) ([]fuse.DirEntry, error) {
		page := list
		list = nil
		return page, nil
	}
}

func (t *statusTree) readDir(in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	t.mu.Lock()
	d := t.dirs[in.Fh]
	t.mu.Unlock()
	if d == nil {
		id := parseStatusID(in.NodeId)
		begin := t.lister(id)
		if begin == nil || !t.fs.tookOver {
			return fuse.EBADF
		}
		// It was opened before this process took over, and is listed anew.
		d = t.keepListing(in.Fh, id, begin)
	}
	return t.fs.status(d.read(in, out.AddDirEntry))
}

// rewind begins the listing anew.
func (d *statusListing) rewind() {
	d.at, d.next = 0, d.begin()
	d.page = []fuse.DirEntry{
		{Name: ".", Ino: d.id.ino(), Mode: syscall.S_IFDIR},
		{Name: "..", Ino: fuse.FUSE_UNKNOWN_INO, Mode: syscall.S_IFDIR},
	}
}

// read hands out entries after the cookie of a request, which is the number of an
// entry in this listing, until add takes no more.
func (d *statusListing) read(in *fuse.ReadIn, add func(fuse.DirEntry) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.seek(in.Unique, in.Offset); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if i == len(d.page) {
			more, err := d.next(in.Unique)
			if err != nil {
				d.rewind() // a page may be lost
				if i > 0 {
					err = nil // it will be met again
				}
			}
			if err != nil || len(more) == 0 {
				return err
			}
			d.page = append(d.page, more...)
		}
		e := d.page[i]
		e.Off = d.at + uint64(i) + 1
		if !add(e) {
			return nil
		}
	}
}

// seek drops what the reader has taken. It may also have gone back.
func (d *statusListing) seek(unique, cookie uint64) error {
	if cookie < d.at {
		d.rewind()
	}
	for cookie > d.at+uint64(len(d.page)) {
		more, err := d.next(unique)
		if err != nil {
			d.rewind()
			return err
		}
		d.at += uint64(len(d.page))
		d.page = more
		if len(more) == 0 {
			return nil
		}
	}
	d.page = d.page[cookie-d.at:]
	d.at = cookie
	return nil
}
