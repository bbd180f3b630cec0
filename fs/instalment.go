package fs

import "sync"

// A file of a line format that stays open is committed in instalments of whole
// lines. What is committed has left the file: it can neither be read again nor
// changed, and the limits count the rest.

// maxQuiet is how many linger times a file may be flushed again and again before
// it is committed all the same.
const maxQuiet = 12

// isFull reports whether the whole lines of a file are to be committed before more
// is written: if it would get larger than it may be. Smaller ones enter the queue
// together, however long their writing takes, unless they linger (G2).
func (fs *FS) isFull(f *file, n need) bool {
	full := int64(len(f.buf))+n.bytes > fs.limit(f) || f.newlines+n.lines > maxLines
	return full && f.newlines > 0 && !f.held && !f.ended && !f.abandoned.Load() && !f.route.format().Whole()
}

// instal stages and commits the whole lines of a file.
func (fs *FS) instal(f *file) error {
	f.since.Store(fs.now().UnixNano())
	err := fs.stageLocked(f)
	switch {
	case err != nil:
	case f.staged.consumed == 0:
		f.newlines = 0 // the ones that were counted have been written over
	default:
		f.owed = true
		err = fs.settle(f)
	}
	f.news.Store(err != nil)
	return err
}

// settle commits what is staged of whole lines. When the store fails it is not
// known whether that was done, so it is tried again before the stage is used for
// anything else.
func (fs *FS) settle(f *file) error {
	if !f.owed {
		return nil
	}
	s := &f.staged
	if err := f.stage.CommitFirst(s.entries, uint64(f.base)+uint64(s.consumed)); err != nil {
		return err
	}
	f.owed = false
	fs.count(f, s.counts)
	consumed := s.consumed
	s.before, s.consumed, s.entries, s.counts = s.lines, 0, 0, counts{}
	fs.dropBytes(f, consumed)
	f.newlines = 0
	return nil
}

// lingering lists the files that have been open for the linger time without a
// FLUSH, fsync or instalment.
func (fs *FS) lingering() []*file {
	now := fs.now()
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var files []*file
	for _, h := range fs.handles {
		f := h.file
		if !h.writer || !f.news.Load() || f.route.format().Whole() {
			continue
		}
		linger := f.route.tuned.Load().Linger
		quiet, oldest := now.Add(-linger).UnixNano(), now.Add(-maxQuiet*linger).UnixNano()
		if f.active.Load() <= quiet || f.since.Load() <= oldest {
			files = append(files, f)
		}
	}
	return files
}

// commitLingering commits the whole lines of files that stay open.
func (fs *FS) commitLingering() {
	var work sync.WaitGroup
	some := make(chan struct{}, 16) // at a time: they share the sync
	for _, f := range fs.lingering() {
		some <- struct{}{}
		work.Go(func() {
			defer func() { <-some }()
			fs.guard(func() { fs.commitQuiet(f) })
		})
	}
	work.Wait()
}

func (fs *FS) commitQuiet(f *file) {
	f.mu.Lock()
	defer fs.unlock(f)
	if f.held || f.ended || f.abandoned.Load() {
		return
	}
	if err := fs.instal(f); err != nil {
		fs.lost(f, err)
	}
}
