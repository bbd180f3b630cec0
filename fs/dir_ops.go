package fs

import (
	"cmp"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// listing is what an open directory shows. The cookie of an entry is its inode
// number, by which it is sorted, so that a listing goes on where it was whatever
// has come or gone.
type listing []fuse.DirEntry

// OpenDir takes the listing. Only root may list the mount.
func (fs *FS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if inStatus(in.NodeId) {
		return fs.tree.openDir(in, out)
	}
	switch {
	case in.NodeId != rootNode:
		return fuse.ENOTDIR
	case in.Uid != 0:
		return fuse.EACCES
	}
	list := listing{{Name: statusDir, Ino: statusNode, Mode: syscall.S_IFDIR}}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	list = append(list, fs.listNamesLocked(in.Uid)...)
	slices.SortFunc(list, func(a, b fuse.DirEntry) int { return cmp.Compare(a.Ino, b.Ino) })
	out.Fh = in.Unique
	fs.listings[out.Fh] = list
	return fuse.OK
}

// listNamesLocked lists the names that exist for a user.
func (fs *FS) listNamesLocked(uid uint32) listing {
	var list listing
	for key, n := range fs.names {
		if key.uid == uid && fs.findLocked(key) != nil {
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
	fs.mu.Lock()
	list := fs.listings[in.Fh]
	fs.mu.Unlock()
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

// ReleaseDir forgets the listing.
func (fs *FS) ReleaseDir(in *fuse.ReleaseIn) {
	if inStatus(in.NodeId) {
		fs.tree.release(in.Fh)
		return
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.listings, in.Fh)
}

// FsyncDir has nothing to do: names are labels.
func (fs *FS) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }
