package queue

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A sector that a disk cannot read any more is damage, though it comes as an
// error of the system: a table with one would fail each Lease and each
// compaction that meets it, for ever. A disk that is away for a moment says the
// same. So a read of a table that fails is tried again for a while, and then the
// database is set aside; the salvage reads zeros where it can read
// nothing, which no checksum fits, and gives up for now if that is much of what it
// reads: then it is the disk that is away.
const (
	defaultPatience = 10 * time.Second       // for a read of a table
	mediumWait      = 100 * time.Millisecond // between attempts
	mediumPage      = 4096
	mediumTries     = 3  // for a page in a salvage
	mediumSpared    = 16 // pages that may be unreadable in any case
)

// isMedium reports whether a disk said that it cannot read.
func isMedium(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENODATA, syscall.EREMOTEIO, syscall.EILSEQ, syscall.EBADMSG, syscall.EUCLEAN} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// tableFile is a table that an engine reads.
type tableFile struct {
	vfs.File
	e    *engine
	name string
}

// ReadAt returns errDamaged for what stays unreadable.
func (f *tableFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	for start := time.Now(); err != nil && isMedium(err); n, err = f.File.ReadAt(p, offset) {
		if time.Since(start) > f.e.patience {
			return n, fmt.Errorf("%w: read %s at %d: %w", errDamaged, f.name, offset, err)
		}
		if !f.e.pause(mediumWait) {
			return n, err
		}
	}
	return n, err
}

// tolerantFS reads zeros where the disk cannot read.
type tolerantFS struct {
	vfs.FS
	read, unread atomic.Int64 // pages
}

func (t *tolerantFS) Unwrap() vfs.FS { return t.FS }

func (t *tolerantFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := t.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return &tolerantFile{File: file, fs: t}, nil
}

type tolerantFile struct {
	vfs.File
	fs     *tolerantFS
	offset int64 // of the next Read
}

func (f *tolerantFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.offset)
	f.offset += int64(n)
	if n > 0 {
		return n, nil
	}
	return n, err
}

// ReadAt reads page by page if it cannot read all at once.
func (f *tolerantFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	f.fs.read.Add(int64(n+mediumPage-1) / mediumPage)
	if err == nil || !isMedium(err) {
		return n, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	end := min(offset+int64(len(p)), info.Size())
	for at := offset; at < end; {
		next := min((at/mediumPage+1)*mediumPage, end)
		if err := f.readPage(p[at-offset:next-offset], at); err != nil {
			return int(at - offset), err
		}
		at = next
	}
	if end < offset+int64(len(p)) {
		return int(end - offset), io.EOF
	}
	return len(p), nil
}

func (f *tolerantFile) readPage(p []byte, at int64) error {
	_, err := f.File.ReadAt(p, at)
	for try := 1; err != nil && isMedium(err) && try < mediumTries; try++ {
		time.Sleep(mediumWait)
		_, err = f.File.ReadAt(p, at)
	}
	if err == nil || !isMedium(err) {
		f.fs.read.Add(1)
		return err
	}
	if n := f.fs.unread.Add(1); n > mediumSpared && n > f.fs.read.Load()/8 {
		return err
	}
	clear(p)
	return nil
}
