package fs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"spoolfs/fs/ingest"
	"spoolfs/fs/shm"
	"spoolfs/queue"
)

// takeover makes the tables anew from what a former process has kept in the
// shared memory, and joins the stages of the queue to the files.
type takeover struct {
	fs     *FS
	stages map[queue.FileID]*queue.Stage // that nobody has claimed yet
	files  map[uint64]*file
	gone   map[uint64]bool // files that were unlinked
	holds  map[uint64]*node

	// gap is how long nobody has served. It does not count for what is to last
	// for some time.
	gap time.Duration
}

// takeOver takes up what the memory holds, and returns the stages that do not
// belong to any of it.
func (fs *FS) takeOver(stages []*queue.Stage) ([]*queue.Stage, error) {
	if err := fs.takeOutcomes(); err != nil {
		return nil, err
	}
	t := &takeover{
		fs: fs, stages: map[queue.FileID]*queue.Stage{}, files: map[uint64]*file{},
		gone: map[uint64]bool{}, holds: map[uint64]*node{},
	}
	if at := fs.memory.Alive(); at != 0 {
		t.gap = max(0, time.Duration(fs.now().UnixNano()-at))
	}
	for _, s := range stages {
		t.stages[s.File()] = s
	}
	for _, step := range []func() error{t.readDirs, t.readFiles, t.readNodes, t.readHandles, t.joinStages, t.finish} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("take over: %w", err)
		}
	}
	return slices.DeleteFunc(stages, func(s *queue.Stage) bool { return t.stages[s.File()] == nil }), nil
}

// claim returns the stage with an id, which belongs to the caller then; nil if
// there is none.
func (t *takeover) claim(id queue.FileID) *queue.Stage {
	s := t.stages[id]
	delete(t.stages, id)
	return s
}

// readDirs makes the directories of users.
func (t *takeover) readDirs() error {
	fs := t.fs
	fs.mu.Lock()
	defer fs.mu.Unlock()
	parents := map[*dir]uint64{}
	err := fs.table.Each(kindDir, func(id uint64, content []byte) error {
		r := newRecord(content)
		parent := r.number()
		d := &dir{
			id: id, uid: uint32(r.number()), gid: uint32(r.number()), mode: uint32(r.number()), mtime: r.time(),
			payer: uint32(r.number()), made: r.number(), moved: r.number(), markID: r.fileID(), name: r.text(),
		}
		parents[d] = parent
		return r.err
	})
	if err != nil {
		return err
	}
	for d := range parents {
		fs.dirs[d.id] = d
	}
	for d, id := range parents {
		parent := fs.dirs[id]
		if parent == nil || parent.dirs[d.name] != nil {
			return fmt.Errorf("%w: directory %q in %d", shm.ErrDamaged, d.name, id)
		}
		if parent.dirs == nil {
			parent.dirs = map[string]*dir{}
		}
		d.parent, parent.dirs[d.name] = parent, d
		d.mark = t.claim(d.markID)
		fs.usage.force(d.payer, holding{files: 1})
	}
	for d := range parents {
		for n, up := 0, d; up != fs.root; n, up = n+1, up.parent {
			if n > len(parents)+1 {
				return fmt.Errorf("%w: directory %q lies in itself", shm.ErrDamaged, d.name)
			}
		}
	}
	return nil
}

// readFiles makes the files.
func (t *takeover) readFiles() error {
	fs := t.fs
	err := fs.table.Each(kindFile, func(id uint64, content []byte) error {
		r := newRecord(content)
		f := &file{id: id, uid: uint32(r.number()), stageID: r.fileID(), mu: newLock(), known: true}
		f.opener = opener{known: r.number() != 0, gid: uint32(r.number()), process: process(r.number()), job: r.text()}
		f.label = r.text()
		f.route = t.routeOf(r)
		f.keptLabel, t.files[id] = f.label, f
		return r.err
	})
	if err != nil {
		return err
	}
	states := map[uint64]fileState{}
	err = fs.table.Each(kindState, func(id uint64, content []byte) (err error) {
		states[id], err = decodeState(content)
		return err
	})
	if err != nil {
		return err
	}
	for id, f := range t.files {
		s, ok := states[id]
		if !ok {
			return fmt.Errorf("%w: file %q without a state", shm.ErrDamaged, f.label)
		}
		if err := fs.table.Claim(s.data); err != nil {
			return err
		}
		f.restore(s, fs.table.Bytes(s.data), t.gap)
	}
	return fs.table.Each(kindGone, func(id uint64, _ []byte) error {
		t.gone[id] = true
		return nil
	})
}

// routeOf reads the route of a file. A process that knew of none but that of the
// root has kept none.
func (t *takeover) routeOf(r *record) *route {
	t.fs.mu.Lock()
	defer t.fs.mu.Unlock()
	if len(r.rest) == 0 {
		return t.fs.root.route
	}
	return t.fs.routeLocked(uint32(r.number()))
}

// restore is the inverse of stateNow.
func (f *file) restore(s fileState, data []byte, gap time.Duration) {
	f.kept = s
	f.base, f.changed, f.flushed, f.data = s.base, s.changed, s.flushed, s.data
	if n := s.size - s.base; n > 0 || s.data.Size > 0 {
		f.buf = data[:n:s.room]
	}
	f.size.Store(s.size)
	f.modified.Store(s.modified)
	f.active.Store(s.active)
	f.since.Store(s.since)
	f.newlines, f.writer = int(s.newlines), s.writer
	f.staged.before, f.staged.lines = int(s.before), int(s.before)
	f.held, f.counted = s.flags&stateHeld != 0, s.flags&stateCounted != 0
	f.ended, f.killed = s.flags&stateEnded != 0, s.flags&stateKilled != 0
	if f.flushed != 0 {
		f.flushed += int64(gap)
	}
	f.dirty, f.put = s.flags&stateDirty != 0, s.flags&statePut != 0
	f.news.Store(s.flags&stateNews != 0)
	f.stale = true
}

// readNodes makes the nodes.
func (t *takeover) readNodes() error {
	fs := t.fs
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.table.Each(kindNode, func(id uint64, content []byte) error {
		r := newRecord(content)
		dirID, uid, named := r.number(), uint32(r.number()), r.number() != 0
		n := &node{
			id: id, owner: uint32(r.number()), gid: uint32(r.number()), mode: uint32(r.number()),
			mtime: r.time(), touched: r.size(), size: r.number(),
		}
		held := r.number()
		for range min(r.size(), maxGraces) {
			n.graces = append(n.graces, grace{process(r.number()), r.time()})
		}
		n.key = nameKey{uid, r.text()}
		if r.err != nil {
			return r.err
		}
		if n.dir = fs.dirs[dirID]; n.dir == nil {
			n.dir, named = fs.root, false
		}
		return t.placeNodeLocked(n, named, held)
	})
}

func (t *takeover) placeNodeLocked(n *node, named bool, held uint64) error {
	fs := t.fs
	fs.nodes[n.id] = n
	if named {
		if n.dir.nodes[n.key] != nil {
			return fmt.Errorf("%w: two nodes of the name %q", shm.ErrDamaged, n.key.name)
		}
		if n.dir.nodes == nil {
			n.dir.nodes = map[nameKey]*node{}
		}
		n.named, n.dir.nodes[n.key] = true, n
	}
	for i := range n.graces {
		n.graces[i].until = n.graces[i].until.Add(t.gap)
	}
	for _, g := range n.graces {
		fs.expiries = append(fs.expiries, expiry{n, g.until})
	}
	if held == 0 {
		return nil
	}
	f := t.files[held]
	if f == nil {
		return fmt.Errorf("%w: node %d holds file %d", shm.ErrDamaged, n.id, held)
	}
	n.held = f
	if !named {
		return nil // it was unlinked, and some still have it open
	}
	f.named, fs.held[n] = true, true
	t.holds[f.id] = n
	fs.usage.force(n.key.uid, holding{files: 1})
	return nil
}

// readHandles makes the handles, in the order in which they were opened.
func (t *takeover) readHandles() error {
	fs := t.fs
	fs.mu.Lock()
	defer fs.mu.Unlock()
	err := fs.table.Each(kindHandle, func(fh uint64, content []byte) error {
		r := newRecord(content)
		n, f := fs.nodes[r.number()], t.files[r.number()]
		h := &handle{fh: fh, node: n, file: f, writer: r.number() != 0, uid: uint32(r.number()), process: process(r.number())}
		if r.err != nil {
			return r.err
		}
		if n == nil || f == nil {
			// One handle without its file must not end the mount for all.
			fs.opts.Logger.Error("an open file is not known any more", "handle", fh)
			fs.noted.change.Delete(shm.Key{Kind: kindHandle, ID: fh})
			fs.noted.some = true
			return nil
		}
		fs.handles[fh] = h
		n.handles = append(n.handles, h)
		f.handles++
		f.keptHandles++
		if h.writer {
			f.writers++
			h.flushed.Store(f.flushed)
		}
		if f.modified.Load() <= n.touched {
			f.modified.Store(0)
		}
		fs.usage.force(h.uid, holding{files: 1})
		return nil
	})
	for _, n := range fs.nodes {
		slices.SortFunc(n.handles, func(a, b *handle) int { return cmp.Compare(a.fh, b.fh) })
	}
	slices.SortFunc(fs.expiries, func(a, b expiry) int { return a.at.Compare(b.at) })
	return err
}

// joinStages joins the stages to the files that somebody has open or that are
// held. All other files have ended, and their stages go the way of those that
// belong to nobody.
func (t *takeover) joinStages() error {
	for _, f := range t.files {
		if f.handles == 0 && !f.named {
			if err := t.leave(f); err != nil {
				return err
			}
			continue
		}
		f.stage = t.claim(f.stageID)
		if err := t.join(f); err != nil {
			return fmt.Errorf("file %q: %w", f.label, err)
		}
		t.fs.usage.force(f.uid, holding{bytes: int64(cap(f.buf))})
	}
	return nil
}

// leave gives up a file that nobody can reach. If it was to be removed, so it is.
func (t *takeover) leave(f *file) error {
	f.buf = nil // which nobody has been charged for
	f.base = f.size.Load()
	if t.gone[f.id] && f.held {
		if s := t.claim(f.stageID); s != nil {
			return s.Discard()
		}
	}
	return nil
}

// join brings a file up to what its stage says: what was stored last may not have
// been noted.
func (t *takeover) join(f *file) error {
	if t.gone[f.id] {
		f.abandoned.Store(!f.held)
	}
	if f.stage == nil {
		// Its RELEASE has committed it, and comes again.
		f.presumed = f.put && !f.ended && !f.held
		f.ended = f.ended || f.put
		return nil
	}
	info := f.stage.Info()
	switch {
	case f.held && info.Held:
		return t.joinHeld(f)
	case f.held:
		return t.published(f, info.File)
	}
	if f.ended {
		// Its commit, for which nobody waits, was lost with the process.
		f.ended = false
		t.fs.commit(f)
		return nil
	}
	return t.fs.skipCommitted(f, int64(info.Committed))
}

// joinHeld finds out what of a held file is stored.
func (t *takeover) joinHeld(f *file) error {
	whole, same := true, true
	end := int64(0)
	for m, err := range f.stage.Entries() {
		if err != nil {
			return err
		}
		whole = whole && !m.Dead()
		if at := end - f.base; at >= 0 {
			same = same && bytes.HasPrefix(f.buf[min(at, int64(len(f.buf))):], m.Body)
		}
		end += int64(len(m.Body))
		f.pieces = append(f.pieces, end)
	}
	if !whole || end < f.base {
		return t.fs.rescueHeld(t.holds[f.id], f)
	}
	if t.gone[f.id] {
		return t.fs.discard(f)
	}
	if same && end == f.end() {
		f.dirty, f.put = false, true // see isStaged
	}
	return nil
}

// published goes on with a held file that has become an ordinary one, or one that
// was set aside.
func (t *takeover) published(f *file, label string) error {
	fs := t.fs
	f.held, f.label, f.stale = false, label, true
	n := t.holds[f.id]
	if n == nil {
		return nil // its rename has got further
	}
	unique, move, err := t.intent(f, n)
	if err != nil {
		return err
	}
	fs.mu.Lock()
	fs.unholdLocked(n)
	n.size = uint64(f.size.Load())
	if move != nil {
		fs.moveLocked(move)
		fs.done[unique] = 0
		fs.noted.change.Set(shm.Key{Kind: kindDone, ID: unique}, func(b []byte) []byte {
			return binary.AppendUvarint(append(b, recordVersion), 0)
		})
	} else {
		fs.unnameLocked(n)
		fs.dropIfEndedLocked(n)
	}
	writers := f.writers
	fs.mu.Unlock()
	if move != nil && move.replaced != nil {
		if err := fs.unlinkHeld(move.replaced, move.dir, move.key, 0); err != nil {
			return err
		}
	}
	if writers == 0 {
		fs.commit(f)
	}
	return nil
}

// intend keeps what a rename is about to do with a held file, or that it has not
// done it.
func (fs *FS) intend(f *file, m *move) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.noted.some = true
	key := shm.Key{Kind: kindIntent, ID: f.id}
	if m == nil {
		fs.noted.change.Delete(key)
		return
	}
	fs.noted.change.Set(key, func(b []byte) []byte {
		b = append(b, recordVersion)
		for _, v := range [...]uint64{m.unique &^ shm.Resent, m.dir.id, uint64(m.key.uid), uint64(m.process)} {
			b = binary.AppendUvarint(b, v)
		}
		return appendText(b, m.key.name)
	})
}

// intent returns what a rename was about to do with a held file.
func (t *takeover) intent(f *file, n *node) (unique uint64, m *move, err error) {
	err = t.fs.table.Each(kindIntent, func(id uint64, content []byte) error {
		if id != f.id {
			return nil
		}
		r := newRecord(content)
		unique = r.number()
		d := t.fs.dirs[r.number()]
		uid, p := uint32(r.number()), process(r.number())
		if name := r.text(); d != nil {
			m = &move{node: n, held: f, dir: d, key: nameKey{uid, name}, label: f.label, process: p}
		}
		return r.err
	})
	return unique, m, err
}

// skipCommitted drops what the store says was committed of a file.
func (fs *FS) skipCommitted(f *file, committed int64) error {
	n := committed - f.base
	if n <= 0 {
		return nil
	}
	if n > int64(len(f.buf)) {
		return fmt.Errorf("%w: committed up to %d of %d bytes", shm.ErrDamaged, committed, f.end())
	}
	found := f.route.format().Decode(f.buf[:n], ingest.Position{Line: f.staged.before, File: f.stageID, Origin: fs.originOf(f), Seen: &f.seen})
	f.staged.before += found.Lines
	f.staged.restart()
	fs.usage.force(f.uid, holding{bytes: int64(cap(f.buf))})
	fs.dropBytes(f, int(n))
	fs.usage.give(f.uid, holding{bytes: int64(cap(f.buf))})
	f.newlines, f.changed = 0, max(f.changed, f.base)
	return nil
}

// findStaged finds out what is staged of an ordinary file after a take-over. If
// that is not what the bytes say, all is staged anew.
func (fs *FS) findStaged(f *file) {
	if !f.stale {
		return
	}
	f.stale = false
	f.staged.restart()
	f.seen = ingest.Seen{}
	next := f.staged
	if f.stage != nil && int64(f.stage.Info().Committed) != f.base {
		// The bytes are not here any more: it can only be committed as it is.
		f.staged.entries, f.dirty = f.stage.Len(), false
		return
	}
	if f.stage != nil && f.dirty {
		f.dirty = !fs.isStaged(f, &next)
	} else if f.stage != nil {
		fs.decode(f, &next, func([]queue.Message) bool { return true })
	}
	entries := next.entries
	if next.tail.Line != 0 {
		entries++
	}
	if f.stage != nil && (f.dirty || entries != f.stage.Len()) {
		f.seen = ingest.Seen{}
		f.dirty, f.changed = true, f.base
		return
	}
	f.staged = next
}

// isStaged reports whether a stage holds what the bytes of a file say: its last
// process may have died when that was done and before it could say so. What a
// queue hands back is on stable storage. A process that lives for a shorter time
// than a sync takes gets on, too.
func (fs *FS) isStaged(f *file, at *staged) bool {
	next, stop := iter.Pull2(f.stage.Entries())
	defer stop()
	same := true
	fs.decode(f, at, func(ms []queue.Message) bool {
		for i := range ms {
			m, err, ok := next()
			if !ok || err != nil || m.Line != ms[i].Line || m.Partial != ms[i].Partial || m.Dead() != ms[i].Dead() || !bytes.Equal(m.Body, ms[i].Body) {
				same = false
			}
		}
		return same
	})
	_, _, more := next()
	return same && !more
}

// rescueHeld sets aside what can be read of a held file that is damaged.
func (fs *FS) rescueHeld(n *node, f *file) error {
	err := fs.rescue(f)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if n != nil {
		fs.unholdLocked(n)
		fs.unnameLocked(n)
		fs.dropIfEndedLocked(n)
	}
	return err
}

// finish ends what has ended, and keeps what has changed.
func (t *takeover) finish() error {
	fs := t.fs
	fs.mu.Lock()
	for _, n := range fs.nodes {
		fs.dropIfEndedLocked(n)
	}
	fs.expireLocked()
	fs.mu.Unlock()
	for _, f := range t.files {
		f.mu.Lock()
		fs.unlock(f)
		fs.forgetIfEnded(f)
	}
	var c shm.Change
	err := fs.table.Each(kindIntent, func(id uint64, _ []byte) error {
		c.Delete(shm.Key{Kind: kindIntent, ID: id})
		return nil
	})
	return errors.Join(err, fs.table.Commit(&c))
}

// outcomesLast is how long the outcomes of a former process are remembered after
// the first request that was not resent: a reader may still be about to see one
// that was.
const outcomesLast = 10 * time.Second
