package fs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

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
	for _, step := range []func() error{t.readDirs, t.readFiles, t.readNodes, t.readHandles, t.readSnapshots, t.joinStages, t.finish} {
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
