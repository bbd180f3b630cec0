package fs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/queue"
)

// operation is a kind of request whose duration is counted.
type operation uint8

const (
	opLookup operation = iota
	opGetAttr
	opSetAttr
	opMkdir
	opUnlink
	opRmdir
	opRename
	opCreate
	opOpen
	opRead
	opWrite
	opFlush
	opFsync
	opRelease
	opOpenDir
	opReadDir
	opStatFs
	operationCount
)

// operationNames are those of the system's calls, as far as they have one.
var operationNames = [operationCount]string{
	opLookup:  "lookup",
	opGetAttr: "getattr",
	opSetAttr: "setattr",
	opMkdir:   "mkdir",
	opUnlink:  "unlink",
	opRmdir:   "rmdir",
	opRename:  "rename",
	opCreate:  "create",
	opOpen:    "open",
	opRead:    "read",
	opWrite:   "write",
	opFlush:   "flush",
	opFsync:   "fsync",
	opRelease: "release",
	opOpenDir: "opendir",
	opReadDir: "readdir",
	opStatFs:  "statfs",
}

// operations counts how long requests took, by their kind.
type operations [operationCount]queue.Durations

// Operations returns how long requests took, by their kind.
func (fs *FS) Operations() map[string]queue.DurationStats {
	all := make(map[string]queue.DurationStats, operationCount)
	for op := range fs.took {
		all[operationNames[op]] = fs.took[op].Stats()
	}
	return all
}

// since counts a request that began at start.
func (o *operations) since(op operation, start time.Time) { o[op].Observe(time.Since(start)) }

// timed stands between the connection and the handlers, and counts how long they
// take. What is not here is not counted.
type timed struct {
	fuse.RawFileSystem
	took *operations
}

var _ fuse.RawFileSystem = (*timed)(nil)

// Lookup counts and hands on.
func (t *timed) Lookup(cancel <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	defer t.took.since(opLookup, time.Now())
	return t.RawFileSystem.Lookup(cancel, in, name, out)
}

// GetAttr counts and hands on.
func (t *timed) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	defer t.took.since(opGetAttr, time.Now())
	return t.RawFileSystem.GetAttr(cancel, in, out)
}

// SetAttr counts and hands on.
func (t *timed) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	defer t.took.since(opSetAttr, time.Now())
	return t.RawFileSystem.SetAttr(cancel, in, out)
}

// Mkdir counts and hands on.
func (t *timed) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	defer t.took.since(opMkdir, time.Now())
	return t.RawFileSystem.Mkdir(cancel, in, name, out)
}

// Unlink counts and hands on.
func (t *timed) Unlink(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	defer t.took.since(opUnlink, time.Now())
	return t.RawFileSystem.Unlink(cancel, in, name)
}

// Rmdir counts and hands on.
func (t *timed) Rmdir(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	defer t.took.since(opRmdir, time.Now())
	return t.RawFileSystem.Rmdir(cancel, in, name)
}

// Rename counts and hands on.
func (t *timed) Rename(cancel <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	defer t.took.since(opRename, time.Now())
	return t.RawFileSystem.Rename(cancel, in, from, to)
}

// Create counts and hands on.
func (t *timed) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	defer t.took.since(opCreate, time.Now())
	return t.RawFileSystem.Create(cancel, in, name, out)
}

// Open counts and hands on.
func (t *timed) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	defer t.took.since(opOpen, time.Now())
	return t.RawFileSystem.Open(cancel, in, out)
}

// Read counts and hands on.
func (t *timed) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	defer t.took.since(opRead, time.Now())
	return t.RawFileSystem.Read(cancel, in, buf)
}

// Write counts and hands on.
func (t *timed) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	defer t.took.since(opWrite, time.Now())
	return t.RawFileSystem.Write(cancel, in, data)
}

// Flush counts and hands on.
func (t *timed) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	defer t.took.since(opFlush, time.Now())
	return t.RawFileSystem.Flush(cancel, in)
}

// Fsync counts and hands on.
func (t *timed) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	defer t.took.since(opFsync, time.Now())
	return t.RawFileSystem.Fsync(cancel, in)
}

// Release counts and hands on.
func (t *timed) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	defer t.took.since(opRelease, time.Now())
	t.RawFileSystem.Release(cancel, in)
}

// OpenDir counts and hands on.
func (t *timed) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	defer t.took.since(opOpenDir, time.Now())
	return t.RawFileSystem.OpenDir(cancel, in, out)
}

// ReadDir counts and hands on.
func (t *timed) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	defer t.took.since(opReadDir, time.Now())
	return t.RawFileSystem.ReadDir(cancel, in, out)
}

// StatFs counts and hands on.
func (t *timed) StatFs(cancel <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	defer t.took.since(opStatFs, time.Now())
	return t.RawFileSystem.StatFs(cancel, in, out)
}
