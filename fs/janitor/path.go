package janitor

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OpenPath opens a directory by its path. The symbolic links of the path are
// followed now, and never again: who can write to the directory above must not
// lead us elsewhere, and not even if the directory is not there yet.
func OpenPath(path string) func() (int, error) {
	path = realPath(path)
	return func() (int, error) {
		fd, err := openReal(path)
		if err != nil {
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return fd, nil
	}
}

// openReal opens a directory by a path without symbolic links.
func openReal(path string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS})
	switch {
	case errors.Is(err, unix.ENOSYS):
		return unix.Open(path, flags|unix.O_NOFOLLOW, 0)
	case errors.Is(err, unix.ELOOP):
		err = errMoved
	}
	return fd, err
}

// errMoved says that a path leads elsewhere than it did.
var errMoved = errors.New("there is a symbolic link now where none was at the start: restart if that is meant")

// realPath follows the links of the part of a path that is there.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir, base := filepath.Split(filepath.Clean(path))
	if dir == "" || base == "" {
		return path
	}
	return filepath.Join(realPath(dir), base)
}
