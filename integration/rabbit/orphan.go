package rabbit

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	dirPrefix = "spoolfs-rabbit-"

	// orphanAge is the age from which a directory without a lock is an
	// orphan. One that is younger may be about to get its lock.
	orphanAge = time.Minute
)

// removeOrphans removes the directories of nodes whose process was killed.
// What cannot be removed stays: it may belong to another user.
func removeOrphans() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range dirs {
		removeOrphan(dir)
	}
}

func removeOrphan(dir string) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || time.Since(info.ModTime()) < orphanAge {
		return
	}
	lock, err := lockDir(dir)
	if err != nil {
		return
	}
	defer lock.Close()
	os.RemoveAll(dir)
}

// lockDir locks a directory for as long as the file that it returns is open.
// Our children do not inherit it.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
