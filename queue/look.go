package queue

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// StoreInfo is what can be known of a store without opening it.
type StoreInfo struct {
	Exists bool

	// Format is the version of the stores that this program makes, and reads
	// with all before.
	Format int

	// Owner is the process that has the store open; 0 if none has, or if it is
	// in another container.
	Owner int
	InUse bool
}

// Look looks at a store and changes nothing. It must not be used by the process
// that has the store open: that would lose its lock, as the kernel drops a lock
// of this kind with the first descriptor of the file that is closed.
//
// Errors: ErrNewerStore, or what the disk said.
func Look(dir string) (StoreInfo, error) {
	info := StoreInfo{Format: formatVersion}
	var err error
	if info.Exists, err = checkFormat(vfs.Default, dir); err != nil {
		return info, err
	}
	lock, err := os.Open(filepath.Join(dir, lockFile))
	if os.IsNotExist(err) {
		return info, nil
	}
	if err != nil {
		return info, err
	}
	defer lock.Close()
	asked := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(lock.Fd(), unix.F_GETLK, &asked); err != nil {
		return info, fmt.Errorf("ask for the lock of %q: %w", dir, err)
	}
	if asked.Type != unix.F_UNLCK {
		info.InUse, info.Owner = true, max(0, int(asked.Pid))
	}
	return info, nil
}
