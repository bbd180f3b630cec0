package fs

import (
	"encoding/binary"
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/shm"
	"spoolfs/queue"
)

// A request that a former process had in hand comes again, marked with
// shm.Resent. It may have been carried out and not been answered. What is left
// of that, and what makes up for the rest:
//
//	CREATE OPEN   a handle with the number of the request; with the outcome and
//	              no handle, it has been released
//	WRITE FLUSH   the outcome, which is kept together with the change
//	SETATTR       as well; without it, the values are absolute
//	UNLINK RMDIR  as well; without it, that the name is not there
//	RENAME MKDIR  as well, or the number of the request at the directory
//	RELEASE       that there is no handle
//	.status       the outcome; without it, that the message is not there

// resent reports whether a request may have been carried out before.
func resent(in *fuse.InHeader) bool { return in.Unique&shm.Resent != 0 }

// doneBefore reports whether a request has been carried out before, and the value
// that was kept with that.
func (fs *FS) doneBefore(in *fuse.InHeader) (value uint64, done bool) {
	if !resent(in) {
		return 0, false
	}
	unique := in.Unique &^ shm.Resent
	fs.mu.Lock()
	value, done = fs.done[unique]
	fs.mu.Unlock()
	if done {
		return value, true
	}
	for _, o := range fs.table.Outcomes() {
		if o.Unique == unique {
			return o.Value, true
		}
	}
	return 0, false
}

// answeredBefore reports whether a request has been carried out wholly. Where
// requests are taken from the memory it may have been answered, too, and what it
// made may have been used and be gone: then nobody sees what is answered now, and
// it must not be made again.
func (fs *FS) answeredBefore(in *fuse.InHeader) bool {
	_, done := fs.doneBefore(in)
	return done
}

// openedBefore returns the handle that a request has made before; nil if it has
// not.
func (fs *FS) openedBefore(in *fuse.InHeader) *handle {
	if !resent(in) {
		return nil
	}
	return fs.handle(in.Unique &^ shm.Resent)
}

// madeBefore returns the directory that a request has made before.
func (fs *FS) madeBefore(in *fuse.MkdirIn, name string) *dir {
	if !resent(&in.InHeader) {
		return nil
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if parent := fs.dirs[in.NodeId]; parent != nil {
		if d := parent.dirs[name]; d != nil && d.made == in.Unique&^shm.Resent {
			return d
		}
	}
	return nil
}

// movedBeforeLocked returns the directory that a request has moved before, though
// perhaps not all that is in it.
func (fs *FS) movedBeforeLocked(in *fuse.RenameIn, to *dir, name string) *dir {
	if to == nil || !resent(&in.InHeader) {
		return nil
	}
	if d := to.dirs[name]; d != nil && d.moved == in.Unique&^shm.Resent {
		return d
	}
	return nil
}

// unlessResent is the error of a request that takes something away, which has
// been done if it is not there any more when the request comes again.
func unlessResent(in *fuse.InHeader, err error) error {
	if resent(in) && (errors.Is(err, syscall.ENOENT) || errors.Is(err, queue.ErrNotFound)) {
		return nil
	}
	return err
}

// carriedOut keeps that a request has done what it is for, where nothing else is
// kept.
func (fs *FS) carriedOut(unique, value uint64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.outcomeLocked(unique, value)
}

// takeOutcomes takes the outcomes of requests that were perhaps not answered from
// their slots, which are used again.
func (fs *FS) takeOutcomes() error {
	err := fs.table.Each(kindDone, func(unique uint64, content []byte) error {
		r := newRecord(content)
		fs.done[unique] = r.number()
		return r.err
	})
	if err != nil {
		return err
	}
	var c shm.Change
	for _, o := range fs.table.Outcomes() {
		fs.done[o.Unique] = o.Value
		c.Set(shm.Key{Kind: kindDone, ID: o.Unique}, func(b []byte) []byte {
			return binary.AppendUvarint(append(b, recordVersion), o.Value)
		})
	}
	return fs.table.Commit(&c)
}

// forgetOutcomes forgets the outcomes of requests that cannot come again.
func (fs *FS) forgetOutcomes() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.done) == 0 {
		return
	}
	for unique := range fs.done {
		fs.noted.some = true
		fs.noted.change.Delete(shm.Key{Kind: kindDone, ID: unique})
	}
	clear(fs.done)
}

// outcomesLast is how long the outcomes of a former process are remembered after
// the first request that was not resent: a reader may still be about to see one
// that was.
const outcomesLast = 10 * time.Second
