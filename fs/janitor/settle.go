package janitor

import (
	"fmt"
	"time"
)

// settler judges whether a file has come to rest.
//
// Its age is measured by the clock of the file server, which has set its mtime.
// That clock may jump, and users may set an mtime: so after a jump nothing is old
// before the whole age has passed, and what comes from the future, or has been
// touched lately in spite of its mtime, must be seen unchanged for a while by our
// own clock, which does not jump.
type settler struct {
	age   time.Duration // negative: all has
	clock clock

	now    time.Time     // of the server, at the beginning of the pass
	at     time.Duration // by our clock
	offset time.Duration // of the server's clock from ours, as it was last
	known  bool          // offset is set
	since  time.Duration // when the server's clock jumped last, by ours
	jumped bool

	seen map[string]sighting
	pass int
}

// sighting is what a file was when it was first seen so.
type sighting struct {
	stat  stat
	since time.Duration
	pass  int // in which it was seen last
}

// maxSeen bounds the memory for files that are watched. Others wait.
const maxSeen = 1 << 16

// quietTime is how long a file must be seen unchanged that has been touched since
// its mtime, as by utimes(2), which programs call when they have written all.
const quietTime = 2 * time.Second

func newSettler(age time.Duration, c clock) *settler {
	return &settler{age: age, clock: c, seen: map[string]sighting{}}
}

// begin begins a pass: it reads the clocks. fd is a directory of ours.
func (s *settler) begin(fd int) error {
	before := s.clock.mono()
	now, err := s.clock.server(fd)
	if err != nil {
		return fmt.Errorf("ask the file system for its time: %w", err)
	}
	s.now, s.at = now, s.clock.mono()
	offset := time.Duration(now.UnixNano()) - s.at
	drift := (offset - s.offset).Abs()
	if s.known && drift > s.tolerance()+(s.at-before) {
		s.since, s.jumped = s.at, true
	}
	s.offset, s.known = offset, true
	s.pass++
	for name, seen := range s.seen {
		if seen.pass < s.pass-1 {
			delete(s.seen, name)
		}
	}
	return nil
}

// tolerance is how far the clocks may drift apart from one pass to the next
// before that is a jump: no more than what hardly changes an age.
func (s *settler) tolerance() time.Duration { return max(s.age/10, 100*time.Millisecond) }

// settled reports whether a file has not changed for its age.
func (s *settler) settled(name string, st stat) bool {
	if s.age < 0 {
		return true
	}
	old := s.now.UnixNano() - int64(s.age)
	switch {
	case s.jumped && s.at-s.since < s.age:
		return false
	case st.mtime > s.now.UnixNano():
		return s.unchangedFor(name, st, s.age)
	case st.mtime > old:
		return false
	case st.ctime > old:
		return s.unchangedFor(name, st, min(s.age, quietTime))
	}
	return true
}

// isOlder reports whether a file is older than an age, by its mtime. The time
// since a jump of the server's clock is all that is known of ages then.
func (s *settler) isOlder(st stat, age time.Duration) bool {
	if s.jumped && s.at-s.since < age {
		return false
	}
	return s.now.UnixNano()-st.mtime >= int64(age)
}

// unchangedFor reports whether a file has been seen as it is for a while.
func (s *settler) unchangedFor(name string, st stat, d time.Duration) bool {
	seen, ok := s.seen[name]
	if !ok && len(s.seen) >= maxSeen {
		return false
	}
	if !ok || !seen.stat.isUnchanged(st) || seen.stat.ctime != st.ctime {
		seen = sighting{stat: st, since: s.at}
	}
	seen.pass = s.pass
	s.seen[name] = seen
	return s.at-seen.since >= d
}
