package fs

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"syscall"

	"spoolfs/fs/ingest"
	"spoolfs/fs/shm"
	"spoolfs/queue"
)

// file is the content that is written through one open file description, or, if
// it is held, through all that have opened its name.
//
//	0          base                    base+staged.consumed      size
//	├──────────┼───────────────────────┼─────────────────────────┤
//	 not here   whole records in stage   the last line
//
// What lies before base is not in memory any more. Of an ordinary file it has
// been committed; of a held file it can be loaded from the stage.
type file struct {
	id      uint64
	uid     uint32 // whose it is
	opener  opener
	route   *route
	stageID queue.FileID // of its stage, now or later

	// size is the number of bytes, readable without waiting for mu. active is
	// when the file was opened, staged or changed its name last, and since when
	// it was opened or committed last, both in nanoseconds.
	size   atomic.Int64
	active atomic.Int64
	since  atomic.Int64

	// news says that it has been written since it was committed last.
	news atomic.Bool

	// modified is when it was written last, in nanoseconds; 0 if its times
	// have been set since.
	modified atomic.Int64

	// Guarded by FS.mu: the handles, those of them that may write, and whether it
	// is the held file of a node.
	handles, writers int
	named            bool

	// keptHandles counts the handles that the tables have, which are more while one is
	// being released: the records of the file must outlive those of its handles.
	// Guarded by FS.mu.
	keptHandles int

	mu lock

	// label is the path under which the file is stored.
	label string

	// held says that the bytes are staged as they are, and wait for a rename.
	held bool

	// counted says that the file is among those that were ingested.
	counted bool

	// ended says that it has been committed or discarded. What a handle that is
	// still open does with it has no effect.
	ended bool

	// abandoned says that its opener has unlinked it: nothing more is staged.
	abandoned atomic.Bool

	base int64
	buf  []byte // in data

	// data is where the bytes are, in the memory that outlives the process.
	// garbage is where they were, until it is kept that they are not there.
	data    shm.Data
	garbage []shm.Data

	// kept and keptLabel are what the memory says of the file. known says that it
	// says something, forgotten that it does not any more.
	kept      fileState
	keptLabel string
	forgotten bool
	known     bool

	// answers is the request whose outcome is kept with the next change, and
	// answer the value of that.
	answers, answer uint64

	// flushed is when it was last flushed, in nanoseconds; 0 if it has been
	// written to since. put says that the store has the stage. stale says that
	// what is staged has to be found out, after a take-over.
	flushed int64
	put     bool
	stale   bool

	// presumed says that the file is taken for ended since its stage is gone.
	presumed bool

	// dirty says that bytes from offset changed on are not staged.
	dirty   bool
	changed int64

	// stage holds what is staged; nil before there is anything.
	stage  *queue.Stage
	staged staged // if it is not held
	seen   ingest.Seen
	owed   bool    // the whole lines are to be committed before anything else
	pieces []int64 // if it is held: where each entry of the stage ends

	// newlines counts those that were written, whole or over others.
	newlines int

	// writer is the thread that wrote last. killed says that it died of a
	// signal.
	writer uint32
	killed bool
}

// maxLines bounds the lines of a file, and so the memory for its records: 64 MiB
// could hold 30 million of them.
const maxLines = 1_000_000

func (fs *FS) newFile(uid uint32, r *route, label string) *file {
	f := &file{id: fs.newID(), uid: uid, route: r, label: label, stageID: queue.NewFileID(), mu: newLock()}
	now := fs.now().UnixNano()
	f.active.Store(now)
	f.since.Store(now)
	return f
}

// end is the offset behind the last byte.
func (f *file) end() int64 { return f.base + int64(len(f.buf)) }

// limit is how many bytes the file may have that are not committed.
func (fs *FS) limit(f *file) int64 {
	tuned := f.route.tuned.Load()
	if tuned.Format.Whole() {
		return min(tuned.FileLimit, tuned.MessageLimit)
	}
	return tuned.FileLimit
}

// chunk is what a WRITE brings.
type chunk struct {
	data   []byte
	offset int64
	atEnd  bool // whatever the offset is
	thread uint32
	unique uint64 // of the request
}

// write puts data at an offset, or at the end.
func (fs *FS) write(f *file, c chunk) error {
	lines := bytes.Count(c.data, []byte("\n"))
	if err := fs.prepare(f, need{c.unique, c.offset, c.atEnd, int64(len(c.data)), lines}); err != nil {
		return err
	}
	defer fs.unlock(f)
	f.flushed = 0
	if c.atEnd {
		// Its own end, whatever the kernel believes: other files under the
		// same name have other sizes.
		c.offset = f.end()
	}
	if err := fs.checkLines(f, lines); err != nil {
		return err
	}
	if err := f.reaches(c.offset); err != nil {
		return err
	}
	if err := fs.resize(f, max(f.end(), c.offset+int64(len(c.data)))); err != nil {
		return err
	}
	copy(f.buf[c.offset-f.base:], c.data)
	f.newlines += lines
	f.writer = c.thread
	fs.touch(f, c.offset)
	f.answers, f.answer = c.unique, uint64(len(c.data))
	return nil
}

// checkLines refuses more lines than a file may have. Before it does so it counts
// those that were not written over or cut off. What a held file has on disk counts
// as it was.
func (fs *FS) checkLines(f *file, more int) error {
	if f.route.format().Whole() || f.newlines+more <= maxLines {
		return nil
	}
	if f.base == 0 || !f.held {
		f.newlines = bytes.Count(f.buf, []byte("\n"))
	}
	if f.newlines+more > maxLines {
		return fmt.Errorf("%w: more than %d lines", errFileLimit, maxLines)
	}
	return nil
}

// truncate sets the size of the file.
func (fs *FS) truncate(unique uint64, f *file, size int64) error {
	if err := fs.prepare(f, need{unique: unique, offset: size}); err != nil {
		return err
	}
	defer fs.unlock(f)
	f.flushed = 0
	if size == f.end() {
		return nil
	}
	if err := f.reaches(size); err != nil {
		return err
	}
	from := min(size, f.end())
	if err := fs.resize(f, size); err != nil {
		return err
	}
	if size == 0 {
		f.newlines = 0
	}
	fs.touch(f, from)
	return nil
}

// read copies bytes from an offset on.
func (fs *FS) read(unique uint64, f *file, buf []byte, offset int64) (int, error) {
	if err := fs.prepare(f, need{unique: unique, offset: offset}); err != nil {
		return 0, err
	}
	defer fs.unlock(f)
	if offset >= f.end() {
		return 0, nil
	}
	if err := f.reaches(offset); err != nil {
		return 0, err
	}
	return copy(buf, f.buf[offset-f.base:]), nil
}

// need is what a request is going to do with a file: use it from an offset on,
// and write some bytes and lines.
type need struct {
	unique uint64 // of the request
	offset int64
	atEnd  bool // whatever the offset is
	bytes  int64
	lines  int
}

// prepare does what a request needs the disk for, and takes the lock of the file.
// After an error nobody has it.
func (fs *FS) prepare(f *file, n need) error {
	if !fs.lock(n.unique, f) {
		return errStuck
	}
	full := n.bytes > 0 && fs.isFull(f, n)
	away := f.held && !n.atEnd && n.offset < f.base
	if !full && !away {
		return nil
	}
	fs.unlock(f)
	err := fs.patiently(n.unique, func() error {
		f.mu.Lock()
		defer fs.unlock(f)
		if full {
			if err := fs.instal(f); err != nil {
				return err
			}
		}
		if away {
			return fs.load(f)
		}
		return nil
	})
	if err == nil && !fs.lock(n.unique, f) {
		err = errStuck
	}
	return err
}

// reaches reports whether the bytes from an offset on are there. What has been
// committed can neither be read again nor changed.
func (f *file) reaches(offset int64) error {
	start := f.base
	if f.owed {
		start += int64(f.staged.consumed)
	}
	if offset < start {
		return fmt.Errorf("%w: offset %d of a file that is committed up to %d", syscall.EINVAL, offset, start)
	}
	return nil
}

// touch notes that the bytes from offset on have changed.
func (fs *FS) touch(f *file, offset int64) {
	if f.presumed {
		f.revive()
	}
	if !f.dirty || offset < f.changed {
		f.changed = offset
	}
	f.dirty = true
	now := fs.now().UnixNano()
	if !f.news.Swap(true) {
		// What is new has the whole linger time before it.
		f.active.Store(now)
		f.since.Store(now)
	}
	f.modified.Store(now)
	if offset < f.base+int64(f.staged.consumed) {
		f.staged.restart()
		f.seen.Forget(f.staged.lines)
	}
}

// revive goes on with a file whose stage is gone, though somebody writes to it:
// all of it is staged anew.
func (f *file) revive() {
	f.ended, f.presumed, f.put, f.stage, f.stageID = false, false, false, nil, queue.NewFileID()
	f.dirty, f.changed = true, f.base
	f.staged.restart()
	f.keptLabel = "" // so that the number is kept
}

// resize makes the file size bytes long; new bytes are zero.
func (fs *FS) resize(f *file, size int64) error {
	taken := size - f.base
	if f.held {
		taken = size
	}
	if limit := fs.limit(f); taken > limit {
		return fmt.Errorf("%w: %d bytes of %d", errFileLimit, taken, limit)
	}
	n, old := size-f.base, int64(len(f.buf))
	if n <= int64(cap(f.buf)) {
		f.buf = f.buf[:n]
		if n > old {
			clear(f.buf[old:])
		}
	} else if err := fs.grow(f, n); err != nil {
		return err
	}
	f.size.Store(size)
	return nil
}

// grow makes the buffer n bytes long, which is more than it has room for.
func (fs *FS) grow(f *file, n int64) error {
	if !f.ended {
		if err := f.route.queue.Admit(f.uid, 1, uint64(n)); err != nil {
			return err
		}
	}
	had := int64(cap(f.buf))
	room := max(n, min(2*had, fs.limit(f)))
	err := fs.usage.take(f.uid, holding{bytes: room - had})
	if err != nil && room > n {
		room = n
		err = fs.usage.take(f.uid, holding{bytes: room - had})
	}
	if err != nil {
		return err
	}
	data, err := fs.table.NewData(int(room))
	if err != nil {
		fs.usage.give(f.uid, holding{bytes: room - had})
		return err
	}
	buf := fs.table.Bytes(data)[:n:room]
	clear(buf[copy(buf, f.buf):])
	f.place(data, buf)
	return nil
}

// place says where the bytes are from now on.
func (f *file) place(data shm.Data, buf []byte) {
	f.garbage = append(f.garbage, f.data)
	f.data, f.buf = data, buf
}

// dropBytes lets go of the first n bytes in memory.
func (fs *FS) dropBytes(f *file, n int) {
	rest := f.buf[n:]
	had := cap(f.buf)
	data, err := shm.Data{}, error(nil)
	if len(rest) > 0 {
		data, err = fs.table.NewData(len(rest))
	}
	switch {
	case len(rest) == 0:
		f.place(data, nil)
	case err != nil:
		// The memory is far larger than what may be buffered. A kill in the midst
		// of this would damage the bytes.
		f.buf = append(f.buf[:0], rest...)
	default:
		buf := fs.table.Bytes(data)[:len(rest):len(rest)]
		copy(buf, rest)
		f.place(data, buf)
	}
	f.base += int64(n)
	fs.usage.give(f.uid, holding{bytes: int64(had - cap(f.buf))})
}
