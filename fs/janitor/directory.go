package janitor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// directory is one that is being emptied.
type directory struct {
	fd    int
	label string // path below the top, with a slash at its end; "" is the top
	depth int
}

func (d *directory) close() error { return unix.Close(d.fd) }

// maxDepth is how deep directories may be nested: each has a descriptor open.
// What lies deeper stays.
const maxDepth = 64

// enter opens a subdirectory; nil if it is none, or has gone.
func (d *directory) enter(name string) (*directory, error) {
	fd, err := openBeneath(d.fd, name, unix.O_DIRECTORY)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("open directory %q: %w", d.label+name, err)
	}
	return &directory{fd: fd, label: d.label + name + "/", depth: d.depth + 1}, nil
}

// each lists a directory, in no order, with the types of the names as far as
// the file system tells them (unix.DT_*). It stops with the error of f.
func each(dir int, f func(name string, kind byte) error) error {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if n == 0 {
			return nil
		}
		if err := eachEntry(buf[:n], f); err != nil {
			return err
		}
	}
}

// eachEntry takes apart what getdents64 gives: an inode number, a cookie, the
// length of the entry (2 bytes), the type (1 byte) and the name up to a NUL.
func eachEntry(buf []byte, f func(name string, kind byte) error) error {
	const lengthAt, kindAt, nameAt = 16, 18, 19
	for len(buf) > nameAt {
		length := int(binary.NativeEndian.Uint16(buf[lengthAt:]))
		if length <= nameAt || length > len(buf) {
			return io.ErrUnexpectedEOF
		}
		name := unix.ByteSliceToString(buf[nameAt:length])
		if name != "." && name != ".." {
			if err := f(name, buf[kindAt]); err != nil {
				return err
			}
		}
		buf = buf[length:]
	}
	return nil
}
