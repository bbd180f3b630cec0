package fs

import (
	"fmt"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// staged says what of an ordinary file its stage stands for. The first entries
// are those of the whole records behind the file's base, which have consumed
// bytes and lines lines; another may stand for the rest.
type staged struct {
	consumed int
	lines    int
	entries  int
	counts
	tail queue.Message // without its body; Line is 0 if there is none

	// before counts the lines that have been committed.
	before int
}

// counts are the entries of a file by what becomes of them.
type counts struct {
	messages, dead, partial int
	repeated                int    // records that are left out
	reason                  string // of the first that is no message
}

func (c *counts) add(m *queue.Message) {
	switch {
	case m.Partial:
		c.partial++
	case m.Dead():
		c.dead++
	default:
		c.messages++
		return
	}
	if c.reason == "" {
		c.reason = fmt.Sprintf("line %d: %.100s", m.Line, m.Reason)
	}
}

// restart forgets all that is staged, since something in it has changed.
func (s *staged) restart() { *s = staged{lines: s.before, before: s.before} }

// add counts what was found in a piece.
func (s *staged) add(found *ingest.Result) {
	s.consumed += found.Consumed
	s.lines += found.Lines
	s.entries += len(found.Messages)
	s.repeated += found.Repeated
	for i := range found.Messages {
		s.counts.add(&found.Messages[i])
	}
}

// all counts the tail too.
func (s *staged) all() counts {
	c := s.counts
	if s.tail.Line != 0 {
		c.add(&s.tail)
	}
	return c
}

// pieceSize is how many bytes are decoded at a time. It bounds the memory for
// messages that are not encoded yet.
const pieceSize = 1 << 20

// maxLarge is how many files with more new bytes than pieceSize are staged at a
// time.
const maxLarge = 2

// stageNew makes what is new durable, and is the ticket for the file's place, for a
// close or for something else.
func (fs *FS) stageNew(unique uint64, f *file, closes bool) error {
	return fs.patiently(unique, func() error {
		f.mu.Lock()
		defer fs.unlock(f)
		if err := fs.stageLocked(f); err != nil {
			return err
		}
		if f.answers = unique; closes {
			f.flushed = fs.now().UnixNano()
		}
		return nil
	})
}

func (fs *FS) stageLocked(f *file) error {
	f.active.Store(fs.now().UnixNano())
	if f.abandoned.Load() || f.ended {
		return nil
	}
	if f.held {
		return fs.stageRaw(f)
	}
	fs.findStaged(f)
	if err := fs.settle(f); err != nil {
		return err
	}
	if !f.dirty {
		return nil
	}
	if len(f.buf)-f.staged.consumed > pieceSize {
		// Few at a time: each takes several times its size.
		fs.large <- struct{}{}
		defer func() { <-fs.large }()
	}
	return fs.stageDecoded(f)
}

// stageDecoded decodes what is new and puts it, all or nothing: what was promised
// before stays promised until the new list is on disk.
func (fs *FS) stageDecoded(f *file) error {
	fs.needStage(f)
	next := f.staged
	err := f.stage.PutPieces(f.staged.entries, func(yield func([]queue.Message) bool) {
		fs.decode(f, &next, func(ms []queue.Message) bool { return yield(fs.identify(f, ms)) })
	})
	if err != nil {
		return err
	}
	// With nothing in it, it is not stored.
	f.staged, f.dirty, f.put = next, false, f.put || f.stage.Len() > 0
	return nil
}

func (fs *FS) needStage(f *file) {
	if f.stage == nil {
		f.stage = f.route.queue.NewStage(f.stageID, queue.StageInfo{File: f.label, UID: f.uid, Held: f.held})
		if f.held {
			f.stage.SetInfo(f.label, true) // so that an empty one is stored, too
		}
	}
}

// decode decodes the bytes in memory behind what at says, piece by piece, and
// advances at. It stops when take returns false.
func (fs *FS) decode(f *file, at *staged, take func([]queue.Message) bool) {
	fs.needStage(f) // whose id the messages may have in them
	at.tail = queue.Message{}
	pos := ingest.Position{File: f.stage.File(), Origin: fs.originOf(f), Seen: &f.seen}
	size := pieceSize
	if f.route.format().Whole() {
		size = len(f.buf)
	}
	for grown := size; ; {
		rest := f.buf[at.consumed:]
		last := grown >= len(rest)
		pos.Line = at.lines
		found := f.route.format().Decode(rest[:min(grown, len(rest))], pos)
		if !last && found.Consumed == 0 {
			grown *= 2 // a line that is longer than the piece
			continue
		}
		at.add(&found)
		if last && found.Tail != nil {
			fs.judgeTail(f, found.Tail)
			at.tail = *found.Tail
			at.tail.Body = nil
			found.Messages = append(found.Messages, *found.Tail)
		}
		f.route.addProvenance(found.Messages, &pos.Origin)
		if !take(found.Messages) || last {
			return
		}
		grown = size
	}
}

// judgeTail sets aside what is not the whole of what its writer had to say.
func (fs *FS) judgeTail(f *file, tail *queue.Message) {
	switch {
	case f.killed && f.route.format().Whole():
		tail.Partial, tail.Reason = true, reasonKilled
	case tail.Reason == ingest.ReasonTornLastLine:
		tail.Partial = true
	}
}

// The reasons for which a file, or the end of it, is a partial file.
const (
	reasonKilled    = "killed"    // a signal ended its writer
	reasonAbandoned = "abandoned" // it waited for its rename for too long
	reasonDamaged   = "damaged"   // a part of a held file cannot be read any more
	reasonReplaced  = "replaced"  // a crash left two held files of one name
)

// identify says of messages where they come from.
func (fs *FS) identify(f *file, ms []queue.Message) []queue.Message {
	now := fs.now()
	for i := range ms {
		m := &ms[i]
		m.ID = f.stage.File().MessageID(m.Line)
		m.Ingested, m.File, m.UID = now, f.label, f.uid
	}
	return ms
}

// finish ends a file when the last handle that may write is released. What was
// written and never flushed (a descriptor that was lost in a socket, say) is
// staged first; its error has nobody to go to but the log.
func (fs *FS) finish(f *file) {
	f.mu.Lock()
	if err := fs.stageLocked(f); err != nil {
		fs.lost(f, err)
	}
	// A held file may have been opened again since, and renamed then: the last one
	// to release it commits it.
	if !f.held && !fs.isWritten(f) {
		fs.commit(f)
	}
	fs.unlock(f)
	fs.letGo(f)
}

// isWritten reports whether a handle may still write to a file.
func (fs *FS) isWritten(f *file) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return f.writers > 0
}

// letGo gives up the memory of a file that nobody has open, unless it could not
// be staged.
func (fs *FS) letGo(f *file) {
	f.mu.Lock()
	defer fs.unlock(f)
	fs.mu.Lock()
	handles := f.handles
	fs.mu.Unlock()
	if handles == 0 && (f.ended || !f.dirty) {
		fs.dropBytes(f, len(f.buf))
	}
}

// commit makes what is staged ready, all together.
func (fs *FS) commit(f *file) {
	if f.ended {
		return
	}
	// If the next process finds no stage, it must know that there was one.
	fs.keep(f)
	f.ended = true
	if f.stage == nil {
		return // an empty file is nothing
	}
	fs.committed(f, f.stage.Commit())
}

// committed counts what is ready of a file, or reports why it is not.
func (fs *FS) committed(f *file, err error) {
	if err != nil {
		fs.lost(f, err)
		return
	}
	fs.count(f, f.staged.all())
}

// count counts what has been committed of a file.
func (fs *FS) count(f *file, c counts) {
	if c.messages+c.dead+c.partial == 0 {
		return // blank lines are nothing either
	}
	if !f.counted {
		f.counted = true
		fs.files.Add(1)
	}
	fs.messages.Add(uint64(c.messages))
	fs.dead.Add(uint64(c.dead))
	fs.partial.Add(uint64(c.partial))
	fs.repeated.Add(uint64(c.repeated))
	if c.dead+c.partial > 0 {
		fs.logAside(f, c)
	}
}

// logAside logs that something of a file was set aside: a number of files a second,
// since a user can make any number of such files.
func (fs *FS) logAside(f *file, c counts) {
	if !fs.asideLog.Allow() {
		fs.unlogged.Add(1)
		return
	}
	fs.opts.Logger.Warn("set aside", "file", f.label, "uid", f.uid, "id", f.stage.File(),
		"dead", c.dead, "partial", c.partial, "first", c.reason, "files_not_logged", fs.unlogged.Swap(0))
}

// How many files of which something was set aside are logged: this many a second,
// and at once.
const (
	asideLogRate  = 2
	asideLogBurst = 50
)

// lost reports an error that no writer will see.
func (fs *FS) lost(f *file, err error) {
	fs.errors.Add(1)
	fs.opts.Logger.Error("release", "file", f.label, "error", err)
}
