package janitor

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"spoolfs/queue"
)

// file is one that has been claimed, and is read through a descriptor: a name
// may be another file at any time.
type file struct {
	claim *claim
	name  string
	fd    int
	stat  stat

	// leased says that the kernel would tell us if somebody opened the file for
	// writing: it would keep him waiting until we are done.
	leased bool

	content  []byte
	messages []queue.Message
	fate     fate
	reason   string // if it is set aside as a whole
}

// fate is what becomes of a file.
type fate int

const (
	removed     fate = iota // its messages are stored, or it has none
	quarantined             // there is no message in it
)

// label is the path of the file below the directory that is emptied.
func (f *file) label() string { return f.claim.dir.label + f.name }

// Errors for which a file stays where it is.
var (
	errBusy    = errors.New("open for writing")
	errChanged = errors.New("changed, or another file by now")
	errYoung   = errors.New("changed a moment ago")
	errLinked  = errors.New("has several names")
	errNoFile  = errors.New("not a regular file")
	errLarge   = errors.New("over the size limit")
)

// open opens a file in a directory, and checks that it is one to take: a
// regular file with one name that nobody has open for writing.
func open(dir int, name string) (*file, error) {
	fd, err := openBeneath(dir, name, 0)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO), errors.Is(err, unix.EXDEV):
		return nil, errNoFile
	case errors.Is(err, unix.EAGAIN): // it has a lease of its owner, who is told to give it up
		return nil, errBusy
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := &file{name: name, fd: fd}
	if err := f.check(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *file) check() (err error) {
	if f.stat, err = statFD(f.fd); err != nil {
		return err
	}
	switch {
	case !f.stat.isFile():
		return errNoFile
	case f.stat.links > 1:
		return errLinked
	case f.stat.links == 0:
		return errChanged
	}
	return f.lease()
}

// lease asks the kernel whether somebody has the file open for writing, and to be
// told if somebody does so later. Not every file system can, and a user can only
// for files of his own.
func (f *file) lease() error {
	_, err := unix.FcntlInt(uintptr(f.fd), unix.F_SETLEASE, unix.F_RDLCK)
	if err != nil && isWritten(err, fileSystem(f.fd)) {
		return errBusy
	}
	f.leased = err == nil
	return nil
}

// verify checks that the name in the claim is this file: between the open and the
// rename a user may have put another one in its place.
func (f *file) verify() error {
	st, err := statAt(f.claim.fd, f.name)
	if err != nil {
		return err
	}
	if !st.isSame(f.stat) {
		return errChanged
	}
	return nil
}

// read reads all of the file.
func (f *file) read() error {
	f.content = make([]byte, f.stat.size)
	n, err := readFull(f.fd, f.content)
	if err != nil {
		return fmt.Errorf("read %q: %w", f.label(), err)
	}
	if int64(n) < f.stat.size {
		return errChanged
	}
	return f.confirm()
}

func readFull(fd int, buf []byte) (int, error) {
	n := 0
	for n < len(buf) {
		m, err := unix.Pread(fd, buf[n:], int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return n, err
		case m == 0:
			return n, nil
		}
		n += max(m, 0)
	}
	return n, nil
}

// confirm checks on the descriptor that the file is still what was opened, and
// that nobody waits for writing to it.
func (f *file) confirm() error {
	st, err := statFD(f.fd)
	switch {
	case err != nil:
		return err
	case !st.isUnchanged(f.stat):
		return errChanged
	case st.links > 1:
		return errLinked
	}
	if !f.leased {
		return nil
	}
	kind, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETLEASE, 0)
	if err == nil && kind != unix.F_RDLCK {
		return errBusy
	}
	return err
}

// remove removes the file, whose messages are stored.
func (f *file) remove() error {
	if err := f.confirm(); err != nil {
		return err
	}
	err := unix.Unlinkat(f.claim.fd, f.name, 0)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove %q: %w", f.label(), err)
	}
	return nil
}

// close lets go of the file.
func (f *file) close() error {
	f.content, f.messages = nil, nil
	if f.fd < 0 {
		return nil
	}
	fd := f.fd
	f.fd = -1
	return unix.Close(fd)
}
