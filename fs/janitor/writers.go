package janitor

import (
	"errors"

	"golang.org/x/sys/unix"
)

// delegating are file systems that give a lease only where their server has
// given them one, and say EAGAIN if not: that says nothing about writers.
var delegating = map[int64]bool{
	unix.NFS_SUPER_MAGIC: true, unix.SMB_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true,
}

// isWritten reports whether an error of F_SETLEASE says that somebody has the
// file open for writing.
func isWritten(err error, fs int64) bool { return errors.Is(err, unix.EAGAIN) && !delegating[fs] }

// fileSystem is the type of the file system of a file; 0 if it cannot be told.
func fileSystem(fd int) int64 {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return 0
	}
	return int64(uint32(st.Type)) // CIFS is a negative number where it has 32 bits
}
