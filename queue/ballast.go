package queue

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ballastFile takes up space that nobody needs, until the disk is full.
const ballastFile = "BALLAST"

const (
	errNoSpace = syscall.ENOSPC
	errQuota   = syscall.EDQUOT
)

func (q *Queue) ballast() string { return q.opts.FS.PathJoin(q.dir, ballastFile) }

// dropBallast gives the ballast up, and reports whether there was any.
func (q *Queue) dropBallast() bool {
	err := q.opts.FS.Remove(q.ballast())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		q.opts.Logger.Error("give up the ballast", "error", err)
	}
	if err == nil {
		q.opts.Logger.Warn("the disk is full: gave up the ballast to go on publishing")
	}
	return err == nil
}

// keepBallast makes the ballast if it is missing and there is room for it.
func (q *Queue) keepBallast() error {
	free, known := q.freeDisk()
	size := q.limits.Ballast
	if !known || free < q.limits.FreeFloor+2*size {
		return nil
	}
	if _, err := q.opts.FS.Stat(q.ballast()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := q.opts.FS.Create(q.ballast(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	// Allocated and not written: it costs no time. A file system that cannot do
	// that goes without.
	err = errors.Join(f.Preallocate(0, int64(size)), f.Close())
	if isFull(err) {
		err = errors.Join(err, q.opts.FS.Remove(q.ballast()))
	}
	return err
}
