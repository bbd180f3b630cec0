package janitor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeClock is a clock of a file server that can jump.
type fakeClock struct {
	mono   time.Duration
	server time.Time
}

func (c *fakeClock) clock() clock {
	return clock{
		mono:   func() time.Duration { return c.mono },
		server: func(int) (time.Time, error) { return c.server, nil },
	}
}

func (c *fakeClock) pass(d time.Duration) { c.mono += d; c.server = c.server.Add(d) }

// TestSettler_Jumps proves J6 and J2: whatever the clock of the file server does,
// and whatever mtime a file has, it settles when it has not changed for its age,
// and not before. A jump costs waiting time.
func TestSettler_Jumps(t *testing.T) {
	const age, day = time.Minute, 24 * time.Hour
	for name, jump := range map[string]time.Duration{"none": 0, "ahead": day, "back": -day, "a little": 30 * time.Second} {
		for _, stamped := range []time.Duration{0, day, -day} {
			for _, before := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, mtime %s, written before %t", name, stamped, before), func(t *testing.T) {
					c := &fakeClock{server: time.Unix(1_800_000_000, 0)}
					s := newSettler(age, c.clock())
					file := stat{ino: 1}
					write := func() {
						file.size++
						file.mtime, file.ctime = c.server.Add(stamped).UnixNano(), c.server.UnixNano()
					}
					settled := func() bool {
						if err := s.begin(0); err != nil {
							t.Fatal(err)
						}
						return s.settled("f", file)
					}
					settled() // an empty directory, say
					if before {
						write()
					}
					// It is written again and again, after each look, every half of the age.
					for i := range 6 {
						if !before || i > 0 {
							write()
						}
						c.pass(age / 2)
						if i == 2 {
							c.server = c.server.Add(jump)
						}
						if stamped >= 0 && settled() {
							t.Fatalf("settled while it is written, after %d writes", i)
						}
					}
					quiet := time.Duration(0)
					for ; !settled(); quiet += time.Second {
						c.pass(time.Second)
						if quiet > 3*age {
							t.Fatal("it never settles")
						}
					}
					if stamped >= 0 && quiet < age/2-2*time.Second {
						t.Errorf("settled %s after its last write", age/2+quiet)
					}
				})
			}
		}
	}
}

// TestJanitor_HeldAndJumps proves J6: a jump of the file server's clock makes no
// file old: neither one that waits for its rename, nor an empty one.
func TestJanitor_HeldAndJumps(t *testing.T) {
	const day = 24 * time.Hour
	for _, jump := range []time.Duration{2 * day, -2 * day} {
		c := &fakeClock{server: time.Now()}
		r := newRig(t, Options{clock: c.clock()})
		r.pass()
		r.write("f.tmp", record("f"))
		r.write("empty", "")
		c.server = c.server.Add(jump)
		for _, wait := range []time.Duration{time.Second, time.Minute / 2} {
			c.pass(wait)
			r.pass()
			check(t, "left", r.names(), []string{"empty", "f.tmp"})
		}
		for range 3 {
			c.pass(5 * time.Minute)
			r.pass()
		}
		if !slices.Contains(r.names(), "f.tmp") {
			t.Error("a file that waits for its rename is set aside because of a jump")
		}
		at := c.server // what is written now has its time
		if err := os.Chtimes(r.path("f.tmp"), at, at); err != nil {
			t.Fatal(err)
		}
		for range 23 {
			c.pass(time.Hour)
			r.pass()
		}
		if !slices.Contains(r.names(), "f.tmp") {
			t.Error("a file that waits for its rename is set aside before its time")
		}
		for range 2 { // its ctime is of a clock that has not jumped
			c.pass(time.Hour)
			r.pass()
		}
		if slices.Contains(r.names(), "f.tmp") {
			t.Error("a file waits for its rename for ever")
		}
	}
}

// TestSettler_Bounded: the memory for files that are watched is bounded, and those
// that are gone are forgotten.
func TestSettler_Bounded(t *testing.T) {
	c := &fakeClock{server: time.Unix(1_800_000_000, 0)}
	s := newSettler(time.Minute, c.clock())
	future := stat{mtime: c.server.Add(time.Hour).UnixNano()}
	for range 3 {
		s.begin(0)
		for i := range 2 * maxSeen {
			s.settled(fmt.Sprint(i), future)
		}
	}
	if len(s.seen) != maxSeen {
		t.Errorf("%d files are watched, want %d", len(s.seen), maxSeen)
	}
	s.begin(0)
	s.begin(0)
	if len(s.seen) != 0 {
		t.Errorf("%d files are watched that have gone", len(s.seen))
	}
}

// TestListing_Bounded proves J7: of any number of files a listing holds the oldest
// that find room, in their order, and says that there are more.
func TestListing_Bounded(t *testing.T) {
	const room, files = 1000, 50_000
	l := newListing(room)
	for i := range files {
		at := (i * 7919) % files // in no order
		l.add(fmt.Sprintf("%06d%s", at, strings.Repeat("x", 200)), stat{mtime: int64(at), ino: uint64(at)})
	}
	l.sort()
	if n := len(l.items); n > room || n < room/2 || !l.more || cap(l.names) > 4*room*206 {
		t.Errorf("%d items, %d bytes of names, more %t", n, cap(l.names), l.more)
	}
	for i, it := range l.items {
		if it.mtime != int64(i) || !strings.HasPrefix(l.nameOf(it), fmt.Sprintf("%06d", i)) {
			t.Fatalf("item %d is %q of time %d", i, l.nameOf(it)[:6], it.mtime)
		}
	}
}
