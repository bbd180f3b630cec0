package queue

import "fmt"

// Driver brings to stable storage what PutSoon has begun.
type Driver struct{ engine *engine }

// Drive waits for the disk, unless somebody else is about to bring there what there is.
// Before it waits it calls begins.
func (d Driver) Drive(begins func()) { d.engine.drive(begins) }

// PutSoon is Put for who must not wait for the disk. It reports whether it has begun; if
// not, nothing was done and Put has to be called, since something has to be cut, room has
// to be made, or there is an error.
//
// What it has begun ends when somebody drives it. Then it calls done, in another
// goroutine or in Drive, with what Put would have returned; that must not wait. The
// stage must not be used before.
func (s *Stage) PutSoon(keep int, add []Message, done func(error)) (Driver, bool) {
	if len(add) == 0 || s.q.begin() != nil {
		return Driver{}, false
	}
	for i := range add {
		add[i].UID = s.info.UID // who is charged for it
	}
	d := Driver{s.q.engine} // which stays while the operation is under way
	begun := s.putSoon(keep, encodeAll(add), func(err error) {
		if err == nil {
			s.infoNew = false
		}
		s.q.end()
		done(err)
	})
	if !begun {
		s.q.end()
	}
	return d, begun
}

func (s *Stage) putSoon(keep int, values []value, done func(error)) bool {
	more := sizeOf(values)
	free, known := s.q.freeDisk()
	b := s.q.engine.db.NewBatch()
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.ended || keep != s.entries || len(s.going) > 0 || s.q.admitLocked(s.info.UID, more, diskRoom{free, known}) != nil ||
		s.route.excessLocked(demand{more: more}) != (tally{}) || s.addLocked(b, values) != nil {
		_ = b.Close()
		return false
	}
	// Synced: this is what close(2) waits for (Q1).
	s.q.engine.submitThen(b, func(k *book) { s.q.noteLocked(k, s.route) }, done)
	return true
}

// CommitSoon is Commit for who must not wait for the disk. It reports whether the stage
// has ended; if not, Commit has to be called.
func (s *Stage) CommitSoon() (done bool, err error) {
	if s.q.begin() != nil {
		return false, nil
	}
	defer s.q.end()
	e := s.q.engine
	if s.route.coalesce.Load() || s.mayDrop() || !e.isRoomy() {
		return false, nil
	}
	w, err := s.submitEnd(e.db.NewBatch(), ending{})
	if err = s.q.leave(w, err); err != nil {
		return true, fmt.Errorf("end stage %q: %w", s.info.File, err)
	}
	s.route.signal()
	return true, nil
}

// mayDrop reports whether it takes more than to submit that the stage has ended.
func (s *Stage) mayDrop() bool {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	return s.ended || s.route.opts.OnFull == DropNewest
}
