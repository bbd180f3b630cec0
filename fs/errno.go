package fs

import (
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/queue"
)

// Errors of the file system itself.
var (
	// errStuck says that the store does not answer. What was to be done may
	// still be done.
	errStuck = errors.New("the store does not answer")

	// errPanicked says that a bug was met, and has been logged.
	errPanicked = errors.New("bug")

	// errDraining says that the daemon is stopping and takes no new files.
	errDraining = errors.New("spool is draining")

	// errFileLimit says that a file would get larger than FileLimit.
	errFileLimit = errors.New("file is over the size limit")

	// errOpenLimit says that as many files are open or held as may be.
	errOpenLimit = errors.New("too many files are open or held")

	// errUserLimit says that a user has as much open or held, or in memory, as
	// one user may.
	errUserLimit = errors.New("user has too much open or held")

	// errNoMessage says that nothing in what is to be published is a message.
	errNoMessage = errors.New("no message in the file")

	// errBufferLimit says that all open files together hold too much.
	errBufferLimit = errors.New("open files hold too many bytes")
)

// status maps an error to what the writer sees. What it does not know is EIO and
// one line in the log with the cause, as the writer will not see that.
func (fs *FS) status(err error) fuse.Status {
	if err != nil {
		fs.countRefusal(err)
	}
	var errno syscall.Errno
	switch {
	case err == nil:
		return fuse.OK
	case errors.Is(err, errPanicked):
		return fuse.EIO // and logged
	case errors.Is(err, errDraining):
		return fuse.EROFS
	case errors.Is(err, errFileLimit):
		return fuse.Status(syscall.EFBIG)
	case errors.Is(err, errNoMessage):
		return fuse.Status(syscall.EBADMSG)
	case errors.Is(err, errOpenLimit):
		return fuse.Status(syscall.ENFILE)
	case errors.Is(err, queue.ErrUserShare), errors.Is(err, errUserLimit):
		return fuse.Status(syscall.EDQUOT)
	case errors.Is(err, queue.ErrFull), errors.Is(err, queue.ErrDiskFull),
		errors.Is(err, errBufferLimit), errors.Is(err, syscall.ENOSPC):
		return fuse.Status(syscall.ENOSPC)
	case errors.Is(err, queue.ErrNotFound):
		return fuse.ENOENT
	case errors.Is(err, queue.ErrLeased):
		return fuse.EBUSY
	case errors.Is(err, queue.ErrFault), errors.Is(err, queue.ErrClosed):
		fs.opts.Logger.Error("answered EIO", "error", err)
		return fuse.EIO
	case errors.As(err, &errno) && errno != syscall.EINTR:
		return fuse.Status(errno)
	}
	fs.opts.Logger.Error("answered EIO", "error", err)
	return fuse.EIO
}
