package fs

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"spoolfs/fs/ingest"
	"spoolfs/fs/shm"
)

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
		// Or it is a held file that was unlinked before anything of it was stored:
		// a later close must store nothing either, since nobody would remove it.
		f.ended = f.ended || f.put || f.held && t.gone[f.id]
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
