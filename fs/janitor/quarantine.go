package janitor

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// quarantine is the directory for files that hold no message. It is ours, as a
// claim is; its file REASONS has a line for each.
type quarantine struct {
	dir *directory
	fd  int
}

const reasonsName = "REASONS"

// openQuarantine opens the quarantine directory beside files, and makes it if it
// is not there. A name that a user has taken for a directory of his is not used.
func openQuarantine(dir *directory, id string) (*quarantine, error) {
	for _, name := range []string{quarantineName, quarantineName + "." + id, quarantineName + "." + NewID()} {
		err := makeOwn(dir, name)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("make quarantine directory: %w", err)
		}
		c, err := openClaim(dir, name)
		if c != nil {
			return &quarantine{dir, c.fd}, nil
		}
		if err != nil && !errors.Is(err, unix.EXDEV) {
			return nil, err
		}
	}
	return nil, errors.New("make quarantine directory: others take its name")
}

// add moves a file into the directory. If there is one of that name already, it
// gets a longer one.
func (q *quarantine) add(f *file) error {
	if err := f.confirm(); err != nil {
		return err
	}
	name := f.name
	err := q.move(f, name)
	if errors.Is(err, unix.EEXIST) {
		name = f.name[:min(len(f.name), 200)] + "." + NewID()
		err = q.move(f, name)
	}
	if err != nil {
		return fmt.Errorf("quarantine %q: %w", f.label(), err)
	}
	return q.note(name, f)
}

func (q *quarantine) move(f *file, name string) error {
	if name == reasonsName {
		return unix.EEXIST
	}
	err := unix.Renameat2(f.claim.fd, f.name, q.fd, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		if err = unix.Linkat(f.claim.fd, f.name, q.fd, name, 0); err == nil {
			err = unix.Unlinkat(f.claim.fd, f.name, 0)
		}
	}
	if errors.Is(err, unix.ENOENT) {
		return nil // another janitor has
	}
	return err
}

// note writes down why a file is here.
func (q *quarantine) note(name string, f *file) error {
	fd, err := unix.Openat(q.fd, reasonsName, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("write down why %q is in quarantine: %w", name, err)
	}
	line := fmt.Sprintf("%s uid=%d %q: %s\n", time.Now().UTC().Format(time.RFC3339), f.stat.uid, name, f.reason)
	_, err = unix.Write(fd, []byte(line))
	return errors.Join(err, unix.Close(fd))
}

func (q *quarantine) close() error { return unix.Close(q.fd) }
