package fs

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"time"

	"spoolfs/fs/shm"
	"spoolfs/queue"
)

// What the next process has to know is kept as records in the shared memory. A
// record is written when the lock that guards it is given up, so that what
// happens under a lock is there for the next process wholly or not at all,
// together with the outcome of the request.
//
//	kind     guarded by  is
//	node     FS.mu       what the kernel knows as an inode
//	handle   FS.mu       an open file description
//	dir      FS.mu       a directory of a user
//	gone     FS.mu       that a file has been unlinked, by its number
//	intent   FS.mu       a rename that publishes a held file, by its number
//	done     FS.mu       how a request ended that may be sent again
//	file     file.mu     what seldom changes of a file, by its number
//	state    file.mu     what changes with each write, and where the bytes are
//	snapshot statusTree.mu  what a handle of the status tree reads
//
// Each begins with recordVersion.
const (
	kindNode shm.Kind = iota + 1
	kindHandle
	kindDir
	kindGone
	kindIntent
	kindDone
	kindFile
	kindState
	kindSnapshot
)

const recordVersion = 1

// tables is the lock of the tables of a file system. What was noted under it is
// kept before it is given up.
type tables struct {
	sync.Mutex
	fs *FS
}

// Unlock gives up the lock.
func (t *tables) Unlock() {
	t.fs.keepLocked()
	t.Mutex.Unlock()
}

// noted is what has changed since the lock of the tables was taken.
type noted struct {
	nodes   []*node
	handles []*handle
	dirs    []*dir
	files   []*file // that are new
	change  shm.Change
	some    bool // of all this
}

func (fs *FS) noteNodeLocked(n *node) {
	if !n.noted {
		n.noted, fs.noted.some = true, true
		fs.noted.nodes = append(fs.noted.nodes, n)
	}
}

func (fs *FS) noteHandleLocked(h *handle) {
	fs.noted.some = true
	fs.noted.handles = append(fs.noted.handles, h)
}

func (fs *FS) noteDirLocked(d *dir) {
	if !d.noted && !d.standing && !d.isTop() {
		d.noted, fs.noted.some = true, true
		fs.noted.dirs = append(fs.noted.dirs, d)
	}
}

// noteFileLocked notes a new file, which nobody else knows yet.
func (fs *FS) noteFileLocked(f *file) {
	fs.noted.some = true
	fs.noted.files = append(fs.noted.files, f)
}

// noteGoneLocked notes that a file has been unlinked, or is not after all.
func (fs *FS) noteGoneLocked(f *file, gone bool) {
	fs.noted.some = true
	if gone {
		fs.noted.change.Set(shm.Key{Kind: kindGone, ID: f.id}, func(b []byte) []byte { return append(b, recordVersion) })
	} else {
		fs.noted.change.Delete(shm.Key{Kind: kindGone, ID: f.id})
	}
}

// outcomeLocked notes that a request has done what it is for.
func (fs *FS) outcomeLocked(unique, value uint64) {
	if s := fs.slotOf(unique); s != nil {
		fs.noted.some = true
		fs.noted.change.Outcome(s, unique, 0, value)
	}
}

// slotOf returns the slot of a request; nil if it is in none.
func (fs *FS) slotOf(unique uint64) *shm.Slot {
	s := fs.server.Load()
	if s == nil || unique == 0 {
		return nil
	}
	if h := s.slots.find(unique &^ shm.Resent); h != nil {
		return h.slot
	}
	return nil
}

// keepLocked keeps what was noted.
func (fs *FS) keepLocked() {
	if !fs.noted.some {
		return
	}
	c := &fs.noted.change
	for _, f := range fs.noted.files {
		f.keepWhole(c)
	}
	for _, n := range fs.noted.nodes {
		n.noted = false
		keepOrDrop(c, shm.Key{Kind: kindNode, ID: n.id}, fs.nodes[n.id] == n, fs.nodes[n.id] != nil, n.encode)
	}
	for _, h := range fs.noted.handles {
		keepOrDrop(c, shm.Key{Kind: kindHandle, ID: h.fh}, fs.handles[h.fh] == h, false, h.encode)
	}
	for _, d := range fs.noted.dirs {
		d.noted = false
		keepOrDrop(c, shm.Key{Kind: kindDir, ID: d.id}, fs.dirs[d.id] == d, false, d.encode)
	}
	fs.commitChange(c)
	n := &fs.noted
	clear(n.nodes)
	clear(n.handles)
	clear(n.dirs)
	clear(n.files)
	n.nodes, n.handles, n.dirs, n.files, n.some = n.nodes[:0], n.handles[:0], n.dirs[:0], n.files[:0], false
}

// keepOrDrop keeps what is there, drops what is not, and leaves what has become
// another's.
func keepOrDrop(c *shm.Change, key shm.Key, there, other bool, encode func([]byte) []byte) {
	switch {
	case there:
		c.Set(key, encode)
	case !other:
		c.Delete(key)
	}
}

// commitChange makes a change, which is empty then. If there is no room, the next
// process will not know of it: it is told to those who can do something.
func (fs *FS) commitChange(c *shm.Change) {
	if err := fs.table.Commit(c); err != nil {
		fs.opts.Logger.Error("what is open is not kept: it will not outlive this process", "error", err)
	}
	c.Reset()
}

// changes are spare ones for those who have no lock of the tables.
var changes = sync.Pool{New: func() any { return new(shm.Change) }}

// unlock keeps what has changed of a file, and gives up its lock.
func (fs *FS) unlock(f *file) {
	fs.keep(f)
	f.mu.Unlock()
}

// keep keeps what has changed of a file, whose lock the caller has.
func (fs *FS) keep(f *file) {
	s := f.stateNow()
	slot := fs.slotOf(f.answers)
	if f.forgotten || !f.known || s == f.kept && f.label == f.keptLabel && slot == nil && len(f.garbage) == 0 {
		f.answers = 0
		return
	}
	c := changes.Get().(*shm.Change)
	if f.label != f.keptLabel {
		f.keepWhole(c)
	} else if s != f.kept {
		c.Set(shm.Key{Kind: kindState, ID: f.id}, s.encode)
	}
	if slot != nil {
		c.Outcome(slot, f.answers, 0, f.answer)
	}
	for _, d := range f.garbage {
		c.Free(d)
	}
	fs.commitChange(c)
	changes.Put(c)
	f.kept, f.garbage, f.answers = s, f.garbage[:0], 0
}

// keepWhole keeps all of a file.
func (f *file) keepWhole(c *shm.Change) {
	f.kept, f.keptLabel, f.known = f.stateNow(), f.label, true
	c.Set(shm.Key{Kind: kindFile, ID: f.id}, f.encode)
	c.Set(shm.Key{Kind: kindState, ID: f.id}, f.kept.encode)
}

// forgetIfEnded gives up the records and the bytes of a file that nobody can
// reach any more.
func (fs *FS) forgetIfEnded(f *file) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.forgetLocked(f)
}

// forgetLocked is forgetIfEnded for who has both locks.
func (fs *FS) forgetLocked(f *file) {
	if f.keptHandles > 0 || f.named || f.forgotten {
		return
	}
	f.forgotten = true
	fs.usage.give(f.uid, holding{bytes: int64(cap(f.buf))})
	f.base, f.buf = f.end(), nil
	c := &fs.noted.change
	for _, kind := range []shm.Kind{kindFile, kindState, kindGone, kindIntent} {
		c.Delete(shm.Key{Kind: kind, ID: f.id})
	}
	for _, d := range append(f.garbage, f.data) {
		c.Free(d)
	}
	f.data, f.garbage = shm.Data{}, nil
	fs.noted.some = true
}

// fileState is what changes with each write to a file.
type fileState struct {
	flags               uint64
	base, size, changed int64
	modified, active    int64
	since, flushed      int64
	newlines, before    int64
	room                int64 // for bytes
	writer              uint32
	data                shm.Data
}

// The flags of a fileState.
const (
	stateHeld = 1 << iota
	stateCounted
	stateEnded
	stateKilled
	stateDirty
	statePut
	stateNews
)

func (f *file) stateNow() fileState {
	s := fileState{
		base: f.base, size: f.size.Load(), changed: f.changed,
		modified: f.modified.Load(), active: f.active.Load(), since: f.since.Load(), flushed: f.flushed,
		newlines: int64(f.newlines), before: int64(f.staged.before), writer: f.writer, data: f.data,
		room: int64(cap(f.buf)),
	}
	for _, b := range [...]struct {
		is  bool
		bit uint64
	}{
		{f.held, stateHeld}, {f.counted, stateCounted}, {f.ended, stateEnded}, {f.killed, stateKilled},
		{f.dirty, stateDirty}, {f.put, statePut}, {f.news.Load(), stateNews},
	} {
		if b.is {
			s.flags |= b.bit
		}
	}
	return s
}

func (s fileState) encode(b []byte) []byte {
	b = append(b, recordVersion)
	for _, n := range [...]uint64{
		s.flags, uint64(s.base), uint64(s.size), uint64(s.changed), uint64(s.modified), uint64(s.active), uint64(s.since),
		uint64(s.flushed), uint64(s.newlines), uint64(s.before), uint64(s.writer), s.data.At, uint64(s.data.Size),
		uint64(s.room),
	} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func decodeState(b []byte) (fileState, error) {
	r := newRecord(b)
	s := fileState{
		flags: r.number(), base: r.size(), size: r.size(), changed: r.size(), modified: r.size(), active: r.size(), since: r.size(),
		flushed: r.size(), newlines: r.size(), before: r.size(), writer: uint32(r.number()),
	}
	s.data = shm.Data{At: r.number(), Size: int(r.size())}
	s.room = r.size()
	if r.err == nil && (s.base > s.size || s.size-s.base > s.room || s.room > int64(s.data.Size)) {
		r.err = fmt.Errorf("%w: file from %d to %d in %d bytes", shm.ErrDamaged, s.base, s.size, s.data.Size)
	}
	return s, r.err
}

// encode appends what seldom changes of a file.
func (f *file) encode(b []byte) []byte {
	b = append(b, recordVersion)
	b = binary.AppendUvarint(b, uint64(f.uid))
	b = append(b, f.stageID[:]...)
	known := uint64(0)
	if f.opener.known {
		known = 1
	}
	for _, v := range [...]uint64{known, uint64(f.opener.gid), uint64(f.opener.process)} {
		b = binary.AppendUvarint(b, v)
	}
	return binary.AppendUvarint(appendText(appendText(b, f.opener.job), f.label), uint64(f.route.queue.ID()))
}

func (n *node) encode(b []byte) []byte {
	b = append(b, recordVersion)
	named, held := uint64(0), uint64(0)
	if n.named {
		named = 1
	}
	if n.held != nil {
		held = n.held.id
	}
	for _, v := range [...]uint64{
		n.dir.id, uint64(n.key.uid), named, uint64(n.owner), uint64(n.gid), uint64(n.mode),
		uint64(n.mtime.UnixNano()), uint64(n.touched), n.size, held, uint64(len(n.graces)),
	} {
		b = binary.AppendUvarint(b, v)
	}
	for _, g := range n.graces {
		b = binary.AppendUvarint(b, uint64(g.process))
		b = binary.AppendUvarint(b, uint64(g.until.UnixNano()))
	}
	return appendText(b, n.key.name)
}

func (h *handle) encode(b []byte) []byte {
	b = append(b, recordVersion)
	writer := uint64(0)
	if h.writer {
		writer = 1
	}
	for _, v := range [...]uint64{h.node.id, h.file.id, writer, uint64(h.uid), uint64(h.process)} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func (d *dir) encode(b []byte) []byte {
	b = append(b, recordVersion)
	for _, v := range [...]uint64{
		d.parent.id, uint64(d.uid), uint64(d.gid), uint64(d.mode), uint64(d.mtime.UnixNano()), uint64(d.payer), d.made, d.moved,
	} {
		b = binary.AppendUvarint(b, v)
	}
	b = append(b, d.markID[:]...)
	return appendText(b, d.name)
}

func appendText(b []byte, text string) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// record is a record that is being read. The first error stays.
type record struct {
	rest []byte
	err  error
}

func newRecord(b []byte) *record {
	r := &record{rest: b}
	if v := r.bytes(1); r.err == nil && v[0] != recordVersion {
		r.err = fmt.Errorf("%w: record of version %d", shm.ErrLayout, v[0])
	}
	return r
}

func (r *record) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// size is a number that is not negative.
func (r *record) size() int64 {
	n := r.number()
	if n > math.MaxInt64 {
		r.fail()
		return 0
	}
	return int64(n)
}

func (r *record) time() time.Time { return time.Unix(0, r.size()) }

func (r *record) bytes(n int) []byte {
	if len(r.rest) < n {
		r.fail()
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *record) text() string {
	n := r.size()
	if n > int64(len(r.rest)) {
		r.fail()
		return ""
	}
	return string(r.bytes(int(n)))
}

func (r *record) fileID() queue.FileID { return queue.FileID(r.bytes(len(queue.FileID{}))) }

func (r *record) fail() {
	r.rest = nil
	if r.err == nil {
		r.err = fmt.Errorf("%w: a record that is too short", shm.ErrDamaged)
	}
}
