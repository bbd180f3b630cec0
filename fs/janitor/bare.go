package janitor

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Bare is the directory below a mount: what is written there while nothing is
// mounted, or by processes that were in it before, is seen by nobody.
type Bare struct{ fd int }

// ErrCovered says that the directory cannot be reached: a mount hides it, and we
// may not look below that.
var ErrCovered = errors.New("the directory below the mount cannot be reached")

// OpenBare opens the directory below a mountpoint, whether anything is mounted on
// it or not. It asks nothing of what is mounted, which may be dead, or be ours to
// serve. For a mountpoint that is covered it needs the capability SYS_ADMIN.
func OpenBare(mountpoint string) (*Bare, error) {
	covered, err := isCovered(mountpoint)
	if err != nil {
		return nil, fmt.Errorf("look below %q: %w", mountpoint, err)
	}
	at, name := unix.AT_FDCWD, mountpoint
	if covered {
		// A copy of the tree around it, without what is mounted in there.
		at, err = unix.OpenTree(unix.AT_FDCWD, filepath.Dir(mountpoint), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("%w: open_tree of %q: %w", ErrCovered, filepath.Dir(mountpoint), err)
		}
		defer unix.Close(at)
		name = filepath.Base(mountpoint)
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: mountpoint, Err: err}
	}
	return &Bare{fd}, nil
}

// Open opens the directory once more, for Options.
func (b *Bare) Open() (int, error) {
	return unix.Openat(b.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// Close lets go of the directory.
func (b *Bare) Close() error { return unix.Close(b.fd) }

// isCovered reports whether a spool is mounted on a directory, dead or alive.
func isCovered(dir string) (bool, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	defer f.Close()
	covered := false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// id parent device root mountpoint options [optional fields] - type source options
		before, after, ok := strings.Cut(lines.Text(), " - ")
		words := strings.Fields(before)
		if ok && len(words) > 4 && unescape(words[4]) == dir {
			covered = strings.HasPrefix(after, "fuse.spoolfs ") // the last one is on top
		}
	}
	return covered, lines.Err()
}

// unescape undoes what the kernel makes of blanks and backslashes in paths.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
