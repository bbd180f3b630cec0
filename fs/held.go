package fs

import (
	"fmt"
	"slices"
	"sort"
	"syscall"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// A held file is a real file: later opens of its name append to it, truncate and
// read it. Its stage holds the bytes as they are, in pieces, and nothing of it is
// in memory while nobody has it open. A rename to an ordinary name decodes it.

// stageRaw puts the bytes of a held file behind what is staged unchanged.
func (fs *FS) stageRaw(f *file) error {
	if !f.dirty && f.stage != nil {
		return nil
	}
	fs.needStage(f)
	keep := sort.Search(len(f.pieces), func(i int) bool { return f.pieces[i] > f.changed })
	if !f.dirty {
		keep = len(f.pieces)
	}
	from := int64(0)
	if keep > 0 {
		from = f.pieces[keep-1]
	}
	pieces := slices.Clone(f.pieces[:keep])
	err := f.stage.PutPieces(keep, func(yield func([]queue.Message) bool) {
		for from < f.end() {
			to := min(from+pieceSize, f.end())
			piece := queue.Message{Line: uint32(len(pieces)) + 1, Body: f.buf[from-f.base : to-f.base]}
			pieces = append(pieces, to)
			from = to
			if !yield(fs.identify(f, []queue.Message{piece})) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	f.pieces, f.dirty, f.put = pieces, false, true
	return nil
}

// load brings back the bytes of a held file that are not in memory.
func (fs *FS) load(f *file) error {
	if f.base == 0 {
		return nil
	}
	size := f.end()
	if err := fs.usage.take(f.uid, holding{bytes: size - int64(cap(f.buf))}); err != nil {
		return err
	}
	data, err := fs.table.NewData(int(size))
	if err != nil {
		fs.usage.give(f.uid, holding{bytes: size - int64(cap(f.buf))})
		return err
	}
	buf := fs.table.Bytes(data)[:0:size]
	for m, err := range f.stage.Entries() {
		if err == nil && m.Dead() {
			err = fmt.Errorf("%w: %s", queue.ErrCorrupt, m.Reason)
		}
		if err == nil && int64(len(buf)+len(m.Body)) > f.base {
			break // what comes now is in memory
		}
		if err != nil {
			fs.usage.give(f.uid, holding{bytes: size - int64(cap(f.buf))})
			fs.table.FreeData(data)
			return fmt.Errorf("read held file %q: %w", f.label, err)
		}
		buf = append(buf, m.Body...)
	}
	f.place(data, append(buf, f.buf...))
	f.base = 0
	return nil
}

// publish makes an ordinary file of the held one of a node and moves the node. It
// is committed when nobody writes to it any more.
func (fs *FS) publish(f *file, m *move) error {
	f.mu.Lock()
	defer fs.unlock(f)
	if !f.held || f.ended {
		return syscall.ENOENT // by another request
	}
	if err := fs.load(f); err != nil {
		return err
	}
	if size, limit := f.end(), fs.limit(f); size > limit {
		return fmt.Errorf("%w: %d bytes of %d", errFileLimit, size, limit)
	}
	if err := fs.checkDecodes(f); err != nil {
		return err
	}
	// The next process has the bytes, and knows what was to be, if it finds that
	// the store has it.
	fs.keep(f)
	fs.intend(f, m)
	held := f.label
	f.label = m.label
	if err := fs.convert(f); err != nil {
		f.label = held
		f.stage.SetInfo(held, true)
		fs.intend(f, nil)
		return err
	}
	fs.mu.Lock()
	// From here on an OPEN gets a file of its own.
	fs.unholdLocked(m.node)
	fs.moveLocked(m)
	writers, handles := f.writers, f.handles
	m.node.size = uint64(f.end())
	fs.mu.Unlock()
	if writers == 0 {
		fs.commit(f)
	}
	if handles == 0 {
		fs.dropBytes(f, len(f.buf))
	}
	return nil
}

// convert puts the messages of a held file in place of its bytes.
func (fs *FS) convert(f *file) error {
	fs.needStage(f)
	f.stage.SetInfo(f.label, false)
	f.held = false
	fs.large <- struct{}{}
	defer func() { <-fs.large }()
	f.staged, f.seen, f.stale = staged{}, ingest.Seen{}, false
	if err := fs.stageDecoded(f); err != nil {
		f.held = true
		return err
	}
	f.pieces = nil
	f.news.Store(true) // which may have come before a restart
	f.active.Store(fs.now().UnixNano())
	f.since.Store(f.active.Load())
	return nil
}

// checkDecodes refuses a file without a single message, unless it holds nothing
// at all: its writer can still be told.
func (fs *FS) checkDecodes(f *file) error {
	var at staged
	f.seen = ingest.Seen{}
	fs.decode(f, &at, func([]queue.Message) bool { return at.all().messages == 0 })
	if c := at.all(); c.messages == 0 && c.dead+c.partial > 0 {
		return fmt.Errorf("%w: %s", errNoMessage, c.reason)
	}
	return nil
}

// relabel gives a held file another held name.
func (fs *FS) relabel(f *file, label string) error {
	f.mu.Lock()
	defer fs.unlock(f)
	if !f.held || f.ended {
		return syscall.ENOENT // by another request
	}
	old := f.label
	f.label = label
	f.active.Store(fs.now().UnixNano())
	if f.stage == nil {
		return nil
	}
	f.stage.SetInfo(label, true)
	if err := f.stage.Put(f.stage.Len(), nil); err != nil {
		f.label = old
		f.stage.SetInfo(old, true)
		return err
	}
	return nil
}

// discard removes a held file whose name is gone. What has it open keeps the
// bytes to itself.
func (fs *FS) discard(f *file) error {
	f.mu.Lock()
	defer fs.unlock(f)
	fs.mu.Lock()
	handles := f.handles
	fs.mu.Unlock()
	if handles > 0 {
		if err := fs.load(f); err != nil {
			return err
		}
		fs.keep(f) // the next process cannot load it any more
	}
	if f.stage != nil {
		if err := f.stage.Discard(); err != nil {
			return err
		}
	}
	f.ended = true
	if handles == 0 {
		fs.dropBytes(f, len(f.buf))
	}
	return nil
}

// abandon sets a held file aside.
func (fs *FS) abandon(f *file, reason string) error {
	f.mu.Lock()
	defer fs.unlock(f)
	if !f.held || f.ended {
		return nil // by a rename that came first
	}
	if err := fs.load(f); err != nil {
		return err
	}
	if len(f.buf) == 0 || f.stage == nil {
		if f.stage != nil {
			if err := f.stage.Discard(); err != nil {
				return err
			}
		}
		f.ended = true
		fs.dropBytes(f, len(f.buf))
		return nil
	}
	m := []queue.Message{{Partial: true, Reason: reason, Line: 1, Body: f.buf}}
	f.stage.SetInfo(f.label, false)
	if err := f.stage.Put(0, fs.identify(f, m)); err != nil {
		f.stage.SetInfo(f.label, true)
		return err
	}
	f.staged = staged{entries: 1}
	f.staged.counts.add(&m[0])
	fs.commit(f)
	fs.dropBytes(f, len(f.buf))
	return nil
}

// holdLocked makes the file of a node a held one.
func (fs *FS) holdLocked(n *node, f *file) {
	n.held, f.named = f, true
	fs.noteNodeLocked(n)
	fs.held[n] = true
}

// unholdLocked says that each open of the node is a file of its own from now on.
func (fs *FS) unholdLocked(n *node) {
	if n.held != nil {
		n.held.named = false
		n.held = nil
		fs.noteNodeLocked(n)
		delete(fs.held, n)
		fs.usage.give(n.key.uid, holding{files: 1})
	}
}

// takeAbandoned takes their names from held files that nobody has open and that
// nothing has happened to for too long.
func (fs *FS) takeAbandoned() []*file {
	now := fs.now()
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var files []*file
	for n := range fs.held {
		f := n.held
		if f.handles == 0 && f.active.Load() <= now.Add(-f.route.tuned.Load().HeldFor).UnixNano() {
			files = append(files, f)
			fs.unholdLocked(n)
			fs.dropIfEndedLocked(n)
		}
	}
	return files
}

// abandonHeld sets aside what has waited for too long.
func (fs *FS) abandonHeld() {
	fs.overdue = append(fs.overdue, fs.takeAbandoned()...)
	fs.overdue = slices.DeleteFunc(fs.overdue, func(f *file) bool {
		err := fs.abandon(f, reasonAbandoned)
		if err != nil {
			fs.lost(f, err)
			return false
		}
		fs.forgetIfEnded(f)
		return true
	})
}
