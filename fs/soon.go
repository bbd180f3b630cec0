package fs

import (
	"encoding/binary"
	"syscall"
	"time"

	"spoolfs/queue"
)

// The close of a small file of lines is what a spool does all day: a FLUSH, which waits
// for the disk, and a RELEASE. Where nothing else has to be waited for, the reader does
// them itself. A FLUSH is staged by it and answered when the disk has it; meanwhile the
// reader takes other requests, and the first one that finds nobody waiting for the disk
// waits for it, for all. What is not that simple is left to a goroutine of its own.

// maxSoon is how many new bytes a reader decodes itself: some 40 messages, which take a
// third of a millisecond.
const maxSoon = 16 << 10

// promise is the answer to a FLUSH that the disk still has to be waited for.
type promise struct{ began time.Time }

// soon handles a request, or begins to, and reports whether it has. What panics here is
// handled as if it had not been tried: it will panic again, where that is answered.
func (s *server) soon(h *hand) (taken bool) {
	in := h.slot.Buffer()[:h.request.Length]
	if h.alone || h.request.Resent || s.fs.wrap != nil || len(in) < soonSize || inStatus(binary.LittleEndian.Uint64(in[16:])) {
		return false
	}
	fh := binary.LittleEndian.Uint64(in[40:])
	switch h.request.Opcode {
	case opcodeFlush:
		s.fs.guard(func() { taken = s.flushSoon(h, fh) })
	case opcodeRelease:
		start := time.Now()
		s.fs.guard(func() { taken = s.fs.releaseSoon(fh) })
		if taken {
			s.fs.took.since(opRelease, start)
			s.reply(h, h.head[:refusal(h.head[:], h.request.Unique, 0)])
			s.done(h)
		}
	}
	return taken
}

// soonSize is the size of a FLUSH and of a RELEASE.
const soonSize = 64

// flushSoon begins to handle a FLUSH, and perhaps waits for the disk, for this one and
// those of others.
func (s *server) flushSoon(h *hand, fh uint64) (taken bool) {
	p := &promise{began: time.Now()}
	h.promise.Store(p)
	h.slot.Wait()
	s.running.Add(1)
	defer func() {
		if !taken && h.promise.CompareAndSwap(p, nil) {
			h.slot.Go()
			s.running.Done()
		} else {
			taken = true // or answered as stuck, meanwhile
		}
	}()
	driver, begun := s.fs.flushSoon(fh, h.request.Unique, func(err error) { s.keepPromise(h, p, err) })
	if taken = begun; taken {
		driver.Drive(s.conn.Again)
	}
	return taken
}

// keepPromise answers a FLUSH, unless somebody else has.
func (s *server) keepPromise(h *hand, p *promise, err error) {
	if !h.promise.CompareAndSwap(p, nil) {
		return
	}
	defer s.running.Done()
	var errno syscall.Errno
	if err != nil {
		s.fs.errors.Add(1)
		errno = syscall.Errno(s.fs.status(err))
	}
	s.fs.took.since(opFlush, p.began)
	h.slot.Go()
	s.reply(h, h.head[:refusal(h.head[:], h.request.Unique, errno)])
	s.done(h)
}

// answerStuck answers what has waited for the disk for too long.
func (s *server) answerStuck() {
	timeout := s.fs.tuned.Load().StoreTimeout
	for i := range s.slots.most.Load() {
		h := s.slots.all[i].Load()
		if p := h.promise.Load(); p != nil && time.Since(p.began) > timeout {
			s.keepPromise(h, p, errStuck)
		}
	}
}

// flushSoon begins to stage what is new of a file that is open. done is called when the
// disk has it, or with an error.
func (fs *FS) flushSoon(fh, unique uint64, done func(error)) (d queue.Driver, begun bool) {
	h := fs.handle(fh)
	if h == nil || !h.writer || !h.file.mu.tryLock() {
		return d, false
	}
	f := h.file
	defer func() {
		if !begun {
			f.mu.Unlock()
		}
	}()
	if !f.isSimple() || !f.dirty || len(f.buf)-f.staged.consumed > maxSoon {
		return d, false
	}
	now, next := fs.now().UnixNano(), f.staged
	f.active.Store(now)
	var ms []queue.Message
	fs.decode(f, &next, func(found []queue.Message) bool {
		ms = fs.identify(f, found)
		return true
	})
	return f.stage.PutSoon(f.staged.entries, ms, func(err error) {
		fs.guard(func() {
			if err == nil {
				f.staged, f.dirty, f.put = next, false, true
				f.answers, f.flushed = unique, now
				h.flushed.Store(now)
			}
			fs.unlock(f)
			done(err)
		})
	})
}

// isSimple reports whether nothing of a file is held, left over or to be found out.
func (f *file) isSimple() bool {
	return !f.held && !f.ended && !f.abandoned.Load() && !f.owed && !f.stale && !f.route.format().Whole()
}

// releaseSoon does what release does for a file that is all staged, and reports whether
// it has.
func (fs *FS) releaseSoon(fh uint64) bool {
	h := fs.handle(fh)
	if h == nil || !h.writer || !h.file.mu.tryLock() {
		return false
	}
	f := h.file
	defer fs.unlock(f)
	if !f.isSimple() || f.dirty || !f.put || len(f.garbage) > 0 || !fs.isLast(h) {
		return false
	}
	done, err := f.stage.CommitSoon()
	if !done {
		return false
	}
	f.ended = true
	fs.committed(f, err)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.handles--
	f.writers--
	fs.closeLocked(h)
	fs.forgetLocked(f)
	return true
}

// isLast reports whether nobody else has the file of a handle.
func (fs *FS) isLast(h *handle) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return h.file.handles == 1
}
