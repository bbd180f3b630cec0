package janitor

import (
	"errors"

	"golang.org/x/sys/unix"
)

// stat is what tells whether a file has changed. Times are in nanoseconds since
// 1970, of the file server's clock.
type stat struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64
	mode, uid    uint32
	links        uint32
}

func (s stat) isFile() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }
func (s stat) isDir() bool  { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// isSame reports whether two stats are of one file.
func (s stat) isSame(t stat) bool { return s.dev == t.dev && s.ino == t.ino }

// isUnchanged reports whether the content is still that of a former stat.
func (s stat) isUnchanged(t stat) bool {
	return s.isSame(t) && s.size == t.size && s.mtime == t.mtime
}

func statOf(st *unix.Stat_t) stat {
	return stat{
		dev: st.Dev, ino: st.Ino, size: st.Size,
		mtime: unix.TimespecToNsec(st.Mtim), ctime: unix.TimespecToNsec(st.Ctim),
		mode: st.Mode, uid: st.Uid, links: uint32(st.Nlink),
	}
}

// statAt is the stat of a name in a directory, and not of what a symbolic link
// points to.
func statAt(dir int, name string) (stat, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return statOf(&st), err
}

func statFD(fd int) (stat, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return statOf(&st), err
}

// openBeneath opens a name in a directory that others can write to: never what
// a symbolic link points to or what is mounted on it, and without waiting for
// the other end of a FIFO.
func openBeneath(dir int, name string, flags int) (int, error) {
	flags |= unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   uint64(flags),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
	if errors.Is(err, unix.ENOSYS) {
		// A name without a slash leads nowhere else either.
		return unix.Openat(dir, name, flags, 0)
	}
	return fd, err
}
