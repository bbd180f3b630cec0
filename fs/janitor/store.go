package janitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// The reasons for which a file is set aside as a whole.
const (
	reasonTooLarge  = "too-large"
	reasonAbandoned = "abandoned" // it waited for its rename for too long
)

// pieceSize is how many bytes of a large file are decoded at a time, and the size
// from which a file is large.
const pieceSize = 1 << 20

// load reads a file and decodes it, unless it is large.
func (j *Janitor) load(f *file) error {
	switch limit := j.limit(); {
	case f.stat.size == 0:
		return nil
	case f.stat.size > limit:
		f.fate, f.reason = quarantined, reasonTooLarge
		return f.confirm()
	case isHeld(f.name) && !j.opts.Bare:
		f.fate, f.reason = quarantined, reasonAbandoned
		return f.confirm()
	}
	if err := f.read(); err != nil {
		return err
	}
	if isHeld(f.name) {
		f.messages = j.identify(f, []queue.Message{{Partial: true, Reason: reasonAbandoned, Line: 1, Body: f.content}})
		return nil
	}
	return j.decodeFile(f)
}

// limit is the size over which a file is not taken.
func (j *Janitor) limit() int64 {
	if j.opts.Format.Whole() {
		return min(j.opts.FileLimit, j.opts.MessageLimit)
	}
	return j.opts.FileLimit
}

// isLarge reports whether a file is decoded in pieces.
func (j *Janitor) isLarge(f *file) bool {
	return len(f.content) > pieceSize && !j.opts.Format.Whole() && !isHeld(f.name)
}

// decodeFile decodes a file as far as its size allows, and finds out whether there
// is a message in it.
func (j *Janitor) decodeFile(f *file) error {
	good, reason := false, ""
	j.decode(f, func(ms []queue.Message) bool {
		for i := range ms {
			if ms[i].Reason == "" {
				good = true
			} else if reason == "" {
				reason = ms[i].Reason
			}
		}
		if !j.isLarge(f) {
			f.messages = ms
			return true
		}
		return !good
	})
	if !good && reason != "" && !j.opts.Bare {
		f.fate, f.reason, f.messages = quarantined, reason, nil
	}
	if !j.isLarge(f) {
		f.content = nil
	}
	return nil
}

// decode decodes the content of a file piece by piece. It stops when take returns
// false.
func (j *Janitor) decode(f *file, take func([]queue.Message) bool) {
	id := fileID(f.label(), f.content)
	at := ingest.Position{File: id, Origin: j.originOf(f), Seen: new(ingest.Seen)}
	size := pieceSize
	if !j.isLarge(f) {
		size = len(f.content)
	}
	for rest, grown := f.content, size; ; {
		last := grown >= len(rest)
		found := j.opts.Format.Decode(rest[:min(grown, len(rest))], at)
		if !last && found.Consumed == 0 {
			grown *= 2 // a line that is longer than the piece
			continue
		}
		at.Line += found.Lines
		rest = rest[found.Consumed:]
		ms := found.Messages
		if last && found.Tail != nil {
			tail := *found.Tail
			tail.Partial = tail.Reason == ingest.ReasonTornLastLine
			ms = append(ms, tail)
		}
		for i := range ms {
			if j.opts.Provenance && !ms[i].Dead() && !ms[i].Partial {
				ingest.AddProvenance(&ms[i], &at.Origin)
			}
		}
		if !take(j.identifyAs(f, id, ms)) || last {
			return
		}
		grown = size
	}
}

func (j *Janitor) identify(f *file, ms []queue.Message) []queue.Message {
	return j.identifyAs(f, fileID(f.label(), f.content), ms)
}

// identifyAs says of messages where they come from.
func (j *Janitor) identifyAs(f *file, id queue.FileID, ms []queue.Message) []queue.Message {
	now := time.Now()
	for i := range ms {
		m := &ms[i]
		m.ID = id.MessageID(m.Line)
		m.Ingested, m.File, m.UID = now, f.label(), f.stat.uid
	}
	return ms
}

// storeBatch stores the messages of files, durably, and removes the files then.
func (j *Janitor) storeBatch(ctx context.Context, files []*file) error {
	j.opts.step("store")
	stored, err := j.store(ctx, files)
	j.opts.step("stored")
	for _, f := range stored {
		if e := j.finish(f); e != nil {
			err = errors.Join(err, j.unread(f.label(), e))
		}
	}
	return err
}

// store stores the messages of files and returns those of which all are stored.
func (j *Janitor) store(ctx context.Context, files []*file) ([]*file, error) {
	var stored, small []*file
	for _, f := range files {
		if !j.isLarge(f) || f.fate != removed {
			small = append(small, f)
			continue
		}
		// Files go in their order.
		done, err := j.storeSmall(ctx, small)
		stored, small = append(stored, done...), nil
		if err == nil {
			err = j.persist(ctx, func() error { return j.storeLarge(f) })
		}
		if err == nil {
			stored = append(stored, f)
		} else if !errors.Is(err, queue.ErrUserShare) {
			return stored, err
		}
	}
	done, err := j.storeSmall(ctx, small)
	return append(stored, done...), err
}

// storeSmall stores files with one sync. If a user has no more room in the queue,
// it stores what others have written.
func (j *Janitor) storeSmall(ctx context.Context, files []*file) ([]*file, error) {
	var all []queue.Message
	for _, f := range files {
		all = append(all, f.messages...)
	}
	if len(all) == 0 {
		return files, nil
	}
	err := j.persist(ctx, func() error { return j.opts.Route.Append(all) })
	switch {
	case err == nil:
		return files, nil
	case !errors.Is(err, queue.ErrUserShare):
		return nil, err
	case len(files) == 1:
		j.warn("a user's share of the queue is full", files[0].label(), err)
		j.setAside(errBusy, files[0].label(), err)
		return nil, nil
	}
	half := len(files) / 2
	first, err := j.storeSmall(ctx, files[:half])
	if err != nil {
		return first, err
	}
	second, err := j.storeSmall(ctx, files[half:])
	return append(first, second...), err
}

// storeLarge stores a file whose messages should not be in memory all at once.
func (j *Janitor) storeLarge(f *file) error {
	stage := j.opts.Route.NewStage(queue.NewFileID(), queue.StageInfo{File: f.label(), UID: f.stat.uid})
	err := stage.PutPieces(0, func(yield func([]queue.Message) bool) { j.decode(f, yield) })
	if err != nil {
		return errors.Join(err, stage.Discard())
	}
	j.decode(f, func(ms []queue.Message) bool { j.countMessages(ms); return true })
	return stage.Commit()
}

// How long it waits before it tries again what the store has refused.
const (
	refusedMin = 100 * time.Millisecond
	refusedMax = 10 * time.Second
)

// persist tries something again for as long as the store is full or fails. What
// is claimed stays claimed meanwhile.
func (j *Janitor) persist(ctx context.Context, store func() error) error {
	for wait := refusedMin; ; wait = min(2*wait, refusedMax) {
		err := store()
		switch {
		case err == nil, errors.Is(err, queue.ErrUserShare), errors.Is(err, queue.ErrClosed):
			return err
		case wait == refusedMin:
			j.log.Warn("the store takes nothing now, trying again", "error", err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// finish removes a file whose messages are stored, or moves it to the quarantine.
func (j *Janitor) finish(f *file) error {
	j.opts.step("finish")
	if f.fate == quarantined {
		return j.quarantine(f)
	}
	// Stored is stored, even if the file is to be taken once more.
	j.countMessages(f.messages)
	if err := f.remove(); err != nil {
		if errors.Is(err, errChanged) || errors.Is(err, errBusy) {
			j.count(func(s *Stats) { s.ChangedTotal++ })
			j.log.Warn("a file was changed while it was taken: it is taken once more", "file", f.label(), "uid", f.stat.uid)
		}
		return err
	}
	j.opts.step("removed")
	j.count(func(s *Stats) { s.FilesTotal++ })
	return nil
}

func (j *Janitor) countMessages(ms []queue.Message) {
	j.count(func(s *Stats) {
		for i := range ms {
			switch {
			case ms[i].Partial:
				s.PartialTotal++
			case ms[i].Dead():
				s.DeadTotal++
			default:
				s.MessagesTotal++
			}
		}
	})
}

// quarantine moves a file aside.
func (j *Janitor) quarantine(f *file) error {
	if j.opts.Bare {
		return errors.Join(errLarge, f.claim.putBack(f.name))
	}
	q, err := openQuarantine(f.claim.dir, j.opts.ID)
	if err != nil {
		return err
	}
	err = errors.Join(q.add(f), q.close())
	if err == nil {
		j.log.Warn("moved a file to the quarantine directory: there is no message in it",
			"file", f.label(), "uid", f.stat.uid, "reason", f.reason)
		j.count(func(s *Stats) { s.QuarantinedTotal++ })
	}
	return err
}
