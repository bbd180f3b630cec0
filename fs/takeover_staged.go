package fs

import (
	"bytes"
	"iter"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

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
