package main

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// null is a file system that takes everything. What put is for is called with at
// each FLUSH, if it is not nil; without it nothing is kept.
type null struct {
	fuse.RawFileSystem
	put  func([]byte) error
	last atomic.Uint64

	mu      sync.Mutex
	written map[uint64][]byte // by handle
}

func newNull(put func([]byte) error) *null {
	n := &null{RawFileSystem: fuse.NewDefaultRawFileSystem(), put: put, written: map[uint64][]byte{}}
	n.last.Store(fuse.FUSE_ROOT_ID)
	return n
}

// Lookup knows no name.
func (n *null) Lookup(<-chan struct{}, *fuse.InHeader, string, *fuse.EntryOut) fuse.Status {
	return fuse.ENOENT
}

// GetAttr is asked for the root.
func (n *null) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	out.SetTimeout(time.Minute)
	out.Ino, out.Mode, out.Nlink = in.NodeId, syscall.S_IFDIR|0o777, 1
	return fuse.OK
}

// Create makes a node that nobody will find again.
func (n *null) Create(_ <-chan struct{}, _ *fuse.CreateIn, _ string, out *fuse.CreateOut) fuse.Status {
	id := n.last.Add(1)
	out.NodeId, out.Fh, out.OpenFlags = id, id, fuse.FOPEN_DIRECT_IO
	out.Attr = fuse.Attr{Ino: id, Mode: syscall.S_IFREG | 0o600, Nlink: 1}
	out.SetAttrTimeout(time.Minute)
	return fuse.OK
}

// Write keeps what there is something to do with.
func (n *null) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if n.put != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.written[in.Fh] = append(n.written[in.Fh], data...)
	}
	return uint32(len(data)), fuse.OK
}

// Flush puts what was written.
func (n *null) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	if n.put == nil {
		return fuse.OK
	}
	n.mu.Lock()
	data := n.written[in.Fh]
	delete(n.written, in.Fh)
	n.mu.Unlock()
	if len(data) == 0 {
		return fuse.OK
	}
	return fuse.ToStatus(n.put(data))
}

// Release has nothing to do.
func (n *null) Release(<-chan struct{}, *fuse.ReleaseIn) {}
