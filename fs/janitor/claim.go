package janitor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// claim is a directory of our own beside the files, which nobody else may enter. A file that has
// been moved into it is ours: nobody else can swap, rename or open it by a name,
// and it keeps its own name, of which its message ids are made.
//
// Its mtime is the lease: it is renewed for as long as we are at work. Who takes
// a claim over renames the whole directory, which only one can.
type claim struct {
	dir  *directory
	name string
	fd   int
}

// newClaim makes a claim in a directory.
func newClaim(dir *directory, id string) (*claim, error) {
	name := claimName(id)
	if err := makeOwn(dir, name); err != nil {
		return nil, fmt.Errorf("make a directory for claims in %q: %w", dir.label, err)
	}
	c, err := openClaim(dir, name)
	if err == nil && c == nil {
		err = fmt.Errorf("make a directory for claims in %q: %w", dir.label, whyNotOwn(dir, name))
	}
	return c, err
}

// ownMode is the mode of directories of ours. The sticky bit is a mark: a user
// may give a claim's name to another directory that is ours and only for us, but
// cannot set that.
const ownMode = unix.S_ISVTX | 0o700

// makeOwn makes a directory of ours. Some file systems forget the mark.
func makeOwn(dir *directory, name string) error {
	if err := unix.Mkdirat(dir.fd, name, ownMode); err != nil {
		return err
	}
	fd, err := openBeneath(dir.fd, name, unix.O_DIRECTORY)
	if err != nil {
		return nil // somebody has moved it, which openClaim finds out
	}
	defer unix.Close(fd)
	if st, err := statFD(fd); err == nil && st.mode&0o7777 != ownMode && st.uid == uint32(unix.Geteuid()) {
		_ = unix.Fchmod(fd, ownMode) // or it is not ours
	}
	return nil
}

// whyNotOwn says why a directory that was made just now is not taken for ours.
func whyNotOwn(dir *directory, name string) error {
	st, err := statAt(dir.fd, name)
	switch {
	case err != nil:
		return err
	case st.uid != uint32(unix.Geteuid()):
		return fmt.Errorf("the file server gives what we make to user %d (as with root_squash): run the janitor as a user whom it knows", st.uid)
	}
	return fmt.Errorf("the file system makes mode %#o of %#o: claims need one that keeps owners and modes", st.mode&0o7777, ownMode)
}

// openClaim opens a claim; nil if it is not one of ours or has gone: a user may
// make a directory of such a name.
func openClaim(dir *directory, name string) (*claim, error) {
	fd, err := openBeneath(dir.fd, name, unix.O_DIRECTORY)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EACCES) {
			return nil, nil
		}
		return nil, fmt.Errorf("open claim %q: %w", name, err)
	}
	st, err := statFD(fd)
	if err != nil || !isOwn(dir, st) {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &claim{dir: dir, name: name, fd: fd}, nil
}

// isOwn reports whether only we can have made a directory as one of these, and
// nobody else can write to it. Where nobody else can write to the directory that
// it is in, the mark does not matter.
func isOwn(dir *directory, st stat) bool {
	if !st.isDir() || st.uid != uint32(unix.Geteuid()) || st.mode&0o077 != 0 {
		return false
	}
	if st.mode&unix.S_ISVTX != 0 {
		return true
	}
	in, err := statFD(dir.fd)
	return err == nil && in.uid == st.uid && in.mode&0o022 == 0
}

// take moves a file into the claim, and reports whether it is there now: it is
// not if somebody else was faster.
func (c *claim) take(name string) (bool, error) {
	err := unix.Renameat(c.dir.fd, name, c.fd, name)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ESTALE):
		// The answer of a network file system to a rename that it has done
		// already, and was asked for once more.
		_, err = statAt(c.fd, name)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) {
			return false, nil
		}
		return err == nil, err
	}
	return false, fmt.Errorf("claim %q: %w", c.dir.label+name, err)
}

// putBack gives something back that is not to be taken. If its name is in use
// again it stays.
func (c *claim) putBack(name string) error {
	err := unix.Renameat2(c.fd, name, c.dir.fd, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		if err = unix.Linkat(c.fd, name, c.dir.fd, name, 0); err == nil {
			err = unix.Unlinkat(c.fd, name, 0)
		}
	}
	if errors.Is(err, unix.EEXIST) && c.isBack(name) {
		err = unix.Unlinkat(c.fd, name, 0)
	}
	if err != nil {
		return fmt.Errorf("put back %q: %w", c.dir.label+name, err)
	}
	return nil
}

// isBack reports whether a file is where it came from, too: whoever put it back
// did not get to the end.
func (c *claim) isBack(name string) bool {
	here, err := statAt(c.fd, name)
	if err != nil {
		return false
	}
	there, err := statAt(c.dir.fd, name)
	return err == nil && there.isSame(here)
}

// rename makes the claim that of another store, or anybody's. It reports whether
// it was still there.
func (c *claim) rename(id string) (bool, error) {
	name := claimName(id)
	err := unix.Renameat(c.dir.fd, c.name, c.dir.fd, name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) {
		var st, own stat
		own, err = statFD(c.fd)
		if err == nil {
			st, err = statAt(c.dir.fd, name)
		}
		if err != nil || !st.isSame(own) {
			return false, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("take over claim %q: %w", c.name, err)
	}
	c.name = name
	return true, nil
}

// isThere reports whether the claim has not been removed.
func (c *claim) isThere() bool {
	st, err := statFD(c.fd)
	return err == nil && st.links > 0
}

// renew renews the lease.
func (c *claim) renew() error {
	_, err := touch(c.fd)
	return err
}

// remove removes the claim if it is empty. What is left in it is found by the
// next pass.
func (c *claim) remove() error {
	err := unix.Unlinkat(c.dir.fd, c.name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func (c *claim) close() error { return unix.Close(c.fd) }
