package fs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// snapshot is one moment of a status file. Each LOOKUP takes a new one under a
// node id of its own, with the same inode number: so the size that stat(2) tells
// is true, an open file does not change, and the kernel's cache is never stale.
type snapshot struct {
	content []byte
	ino     uint64
	at      time.Time
}

// firstStatusIno is the inode number of the first status file.
const firstStatusIno = 16

func (fs *FS) lookupStatus(name string, out *fuse.EntryOut) fuse.Status {
	for i, f := range fs.opts.Status {
		if f.Name != name {
			continue
		}
		s := &snapshot{content: f.Content(), ino: uint64(firstStatusIno + i), at: time.Now()}
		out.NodeId = fs.nextNode.Add(1)
		fs.mu.Lock()
		fs.statuses[out.NodeId] = s
		fs.mu.Unlock()
		s.attr(&out.Attr)
		out.SetAttrTimeout(dirTimeout)
		return fuse.OK
	}
	return fuse.ENOENT
}

func (s *snapshot) attr(out *fuse.Attr) {
	size := uint64(len(s.content))
	*out = fuse.Attr{
		Ino: s.ino, Size: size, Blocks: (size + 511) / 512, Blksize: 4096,
		Mode: syscall.S_IFREG | 0o444, Nlink: 1,
	}
	out.SetTimes(&s.at, &s.at, &s.at)
}

func (fs *FS) snapshotAttr(id uint64, out *fuse.Attr) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	s := fs.statuses[id]
	if s != nil {
		s.attr(out)
	}
	return s != nil
}

func (fs *FS) openStatusLocked(in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if in.Flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return fuse.EACCES
	}
	out.Fh = in.Unique
	return fuse.OK
}

func (fs *FS) statusContent(id uint64) ([]byte, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	s := fs.statuses[id]
	if s == nil {
		return nil, false
	}
	return s.content, true
}

func (fs *FS) listStatus() listing {
	var list listing
	for i, f := range fs.opts.Status {
		list = append(list, fuse.DirEntry{Name: f.Name, Ino: uint64(firstStatusIno + i), Mode: syscall.S_IFREG})
	}
	return list
}
