package queue

import (
	"fmt"
	"iter"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// StageInfo is what a stage remembers for its owner.
type StageInfo struct {
	File string // name of the file
	UID  uint32 // who wrote it

	// Held says that the file waits for its rename. Committed is the offset up
	// to which the file has been committed in instalments, in bytes.
	Held      bool
	Committed uint64
}

// Stage is what one open file description has written and not closed for good.
// It is a list of messages and dead letters that is on disk after each Put and
// becomes ready, all together, with Commit.
//
// One goroutine at a time may use a stage.
type Stage struct {
	q     *Queue
	route *Route
	file  FileID

	// The fields below are guarded by q.mu.

	info    StageInfo
	infoNew bool      // the row does not say so yet
	extents []*extent // the extent at index i has the row of chunk i
	entries int
	going   []*extent // what was cut, until it is on disk that it is
	content content
	ticket  uint64 // the first number of the last Put
	ended   bool

	// owed says that the owner has ended the stage while the queue was parked,
	// or by a write that was lost: it is to be done when the store is open
	// again. discard says how it was ended.
	owed, discard bool
}

// The tags of the head of a stage, in the envelope of fields.go.
const (
	tagStageRoute = iota + 1
	tagStageTicket
	tagStageFile
	tagStageUID
	tagStageHeld
	tagStageCommitted
	tagStageMessages
	tagStageMessageBytes
	tagStageDead
	tagStageDeadBytes
	tagStagePartial
	tagStagePartialBytes
)

// NewStage begins an empty stage. Nothing is written before the first Put.
func (r *Route) NewStage(file FileID, info StageInfo) *Stage {
	return &Stage{q: r.q, route: r, file: file, info: info}
}

// File returns the id of the file.
func (s *Stage) File() FileID { return s.file }

// Info returns what the stage remembers for its owner.
func (s *Stage) Info() StageInfo {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	return s.info
}

// SetInfo changes the name of the file and whether it is held. The next Put
// stores that, together with what else it changes.
func (s *Stage) SetInfo(file string, held bool) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.info.File, s.info.Held = file, held
	s.infoNew = true
}

// Len is the number of messages and dead letters in the stage.
func (s *Stage) Len() int {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	return s.entries
}

// Put cuts the stage to its first keep entries, appends add, and returns when
// all of it is on stable storage. The cost is that of what is cut and added.
//
// Errors: those of Admit, ErrFault. After one the stage is as it was, or the
// queue has failed (ErrFault) and the stage has either the old or the new list
// when it is opened again.
func (s *Stage) Put(keep int, add []Message) error {
	return s.PutPieces(keep, func(yield func([]Message) bool) { yield(add) })
}

// PutPieces is Put for more messages than should be in memory at once: the
// pieces are stored together or not at all.
func (s *Stage) PutPieces(keep int, pieces iter.Seq[[]Message]) error {
	if err := s.q.begin(); err != nil {
		return fmt.Errorf("stage %q: %w", s.info.File, err)
	}
	defer s.q.end()
	var values []value
	for piece := range pieces {
		for i := range piece {
			piece[i].UID = s.info.UID // who is charged for it
		}
		values = append(values, encodeAll(piece)...)
	}
	if len(values) == 0 && keep == s.entries && !s.infoNew {
		return nil // nothing changes
	}
	b := s.q.engine.db.NewBatch()
	cut, err := s.cut(b, keep)
	if err == nil {
		err = s.admit(values, cut.removed.all())
	}
	if err == nil {
		err = s.gone(s.q.await(s.put(b, cut, values)))
	}
	if err != nil {
		return fmt.Errorf("stage %q: %w", s.info.File, err)
	}
	s.infoNew = false
	return nil
}

// admit asks for what is added. What goes in the same Put makes room for it: a
// file that has been taken once can be renamed when the queue is full.
func (s *Stage) admit(values []value, removed tally) error {
	more := sizeOf(values)
	if more.count <= removed.count && more.bytes <= removed.bytes {
		return nil
	}
	more.sub(tally{min(more.count, removed.count), min(more.bytes, removed.bytes)})
	if err := s.route.makeRoom(demand{more: more}); err != nil {
		return err
	}
	return s.route.admit(s.info.UID, more)
}

// value is an encoded record and where it belongs.
type value struct {
	kind  byte
	bytes []byte
}

func sizeOf(values []value) tally {
	var t tally
	for _, v := range values {
		t.add(v.size())
	}
	return t
}

// size is what the record takes.
func (v value) size() tally { return tally{1, uint64(len(v.bytes))} }

func encodeAll(ms []Message) []value {
	values := make([]value, len(ms))
	for i := range ms {
		values[i] = value{ms[i].kind(), encodeRecord(&ms[i])}
	}
	return values
}

// put gives numbers to values, registers them and submits the batch.
func (s *Stage) put(b *pebble.Batch, cut cutting, values []value) (*write, error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.ended {
		return nil, ErrClosed
	}
	s.cutLocked(cut)
	if err := s.addLocked(b, values); err != nil {
		return nil, err
	}
	// Synced: this is what close(2) waits for (Q1).
	return s.q.submitLocked(b, true, s.route), nil
}

// addLocked gives numbers to values, registers them and adds their rows to b.
func (s *Stage) addLocked(b *pebble.Batch, values []value) error {
	r := s.route
	e := &extent{span: span{r.count.next, r.count.next + uint64(len(values))}, stage: s, since: time.Now()}
	added, err := writeRecords(b, r.id, e.lo, values)
	if err != nil {
		return err
	}
	s.q.stages[s.file] = s
	s.ticket = e.lo
	if len(values) > 0 {
		if err := s.addChunkLocked(b, e); err != nil {
			return err
		}
	}
	s.entries += len(values)
	s.content.add(added)
	r.count.staged.add(added.all())
	s.q.chargeLocked(s.info.UID, added.all(), tally{})
	return b.Set(stageKey(s.file), s.encode(), nil)
}

// addChunkLocked registers the numbers of e. Numbers that follow those of the
// last Put join its chunk, so that a file that grows alone has one; but not if
// Lease has passed over that chunk, since it passes over the whole of one.
func (s *Stage) addChunkLocked(b *pebble.Batch, e *extent) error {
	r := s.route
	r.count.next = e.hi
	if n := len(s.extents); n > 0 && s.extents[n-1].hi == e.lo && s.extents[n-1].lo >= r.cursor {
		last := s.extents[n-1]
		last.hi, last.since = e.hi, e.since
		e = last
	} else {
		s.extents = append(s.extents, e)
		r.addExtentLocked(e)
	}
	return b.Set(chunkKey(s.file, uint32(len(s.extents)-1)), encodeChunk(e.span), nil)
}

// writeRecords adds the rows of values, numbered from seq.
func writeRecords(b *pebble.Batch, route uint32, seq uint64, values []value) (content, error) {
	var c content
	for _, v := range values {
		if err := b.Set(seqKey(v.kind, route, seq), v.bytes, nil); err != nil {
			return c, err
		}
		seq++
		c.addRow(v.kind, v.bytes)
	}
	return c, nil
}

// encode returns the head of the stage.
func (s *Stage) encode() []byte {
	w := newFieldWriter(len(s.info.File))
	w.uint(tagStageRoute, uint64(s.route.id))
	w.uint(tagStageTicket, s.ticket)
	w.text(tagStageFile, s.info.File)
	w.uint(tagStageUID, uint64(s.info.UID))
	if s.info.Held {
		w.uint(tagStageHeld, 1)
	}
	w.uint(tagStageCommitted, s.info.Committed)
	w.uint(tagStageMessages, s.content.messages.count)
	w.uint(tagStageMessageBytes, s.content.messages.bytes)
	w.uint(tagStageDead, s.content.dead.count)
	w.uint(tagStageDeadBytes, s.content.dead.bytes)
	w.uint(tagStagePartial, s.content.partial.count)
	w.uint(tagStagePartialBytes, s.content.partial.bytes)
	return w.finish()
}
