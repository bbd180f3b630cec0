package integration

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// chaos says that tests are to run as often as the issues ask, not as often as
// there is time for in a build.
func chaos() bool { return os.Getenv("SPOOLFS_CHAOS") != "" }

// times is how often something is done: rarely in a build.
func times(rarely, often int) int {
	if chaos() {
		return often
	}
	return rarely
}

// echoLoops runs shells that write to one name at the same time, and returns what
// they are called.
func (s *spool) echoLoops(shells, count int, redirection string) (writers []string) {
	s.t.Helper()
	var wait sync.WaitGroup
	for i := range shells {
		writer := fmt.Sprintf("shell%d", i)
		writers = append(writers, writer)
		wait.Go(func() {
			s.sh(fmt.Sprintf(`for ((i = 0; i < %d; i++)); do echo '%s'$i'"}' %s $M/same; done`,
				count, strings.TrimSuffix(numbered(writer, 0), `0"}`), redirection))
		})
	}
	wait.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
	return writers
}

// TestMount_OneName proves G2 and section 4 of the design: eight shells append to
// one name, or truncate it, over and over. Every line comes out, once, and in the
// order of its shell.
func TestMount_OneName(t *testing.T) {
	for _, tt := range []struct {
		redirection string
		count       int
	}{
		{">>", times(150, 10_000)},
		{">", times(50, 1000)},
	} {
		t.Run(tt.redirection, func(t *testing.T) {
			binary := raceBinary
			if chaos() {
				binary = plainBinary
			}
			s := newSpool(t, binary, "stdout:")
			s.start()
			writers := s.echoLoops(8, tt.count, tt.redirection)
			s.untilPublished()
			checkOnceEach(t, s.published(), writers, tt.count)
			if names := s.names(); len(names) != 1 {
				t.Errorf("the mount lists %q", names)
			}
		})
	}
}

// TestMount_NamesTakenAway proves G1 and section 4 of the design: whatever one
// process does to a name that another has just closed, has fsynced, or has open,
// all that the other writes comes out.
func TestMount_NamesTakenAway(t *testing.T) {
	s := startSpool(t, "stdout:")
	victim, other := s.newHand(), s.newHand()
	for name, take := range map[string]func(h *hand, path string, want unix.Errno){
		"truncate": func(h *hand, path string, want unix.Errno) { h.refuses(order{Call: "truncate", Path: path}, want) },
		"unlink":   func(h *hand, path string, want unix.Errno) { h.refuses(order{Call: "unlink", Path: path}, want) },
		"rename away": func(h *hand, path string, want unix.Errno) {
			h.refuses(order{Call: "rename", Path: path, To: "gone"}, want)
		},
		"rename over": func(h *hand, path string, _ unix.Errno) {
			fd := h.create("g")
			h.do(order{Call: "rename", Path: "g", To: path})
			h.close(fd)
		},
		"open with O_TRUNC": func(h *hand, path string, _ unix.Errno) {
			h.close(h.open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC))
		},
		"truncate a descriptor": func(h *hand, path string, _ unix.Errno) {
			fd := h.open(path, unix.O_CREAT|unix.O_WRONLY)
			h.do(order{Call: "ftruncate", FD: fd})
			h.close(fd)
		},
	} {
		// Names are not used again: one who has used a name knows it for a second.
		path := strings.ReplaceAll(name, " ", "-")
		t.Run(name, func(t *testing.T) {
			t.Run("closed", func(t *testing.T) {
				victim.put(path, record("a")+"\n")
				take(other, path, unix.ENOENT)
				s.checkTaken(t, "a")
			})
			t.Run("closed by the same process", func(t *testing.T) {
				victim.put(path+"2", record("a")+"\n")
				take(victim, path+"2", 0)
				s.checkTaken(t, "a")
			})
			t.Run("synced", func(t *testing.T) {
				fd := victim.create(path + "3")
				victim.write(fd, record("a")+"\n")
				victim.fsync(fd)
				take(other, path+"3", 0)
				victim.write(fd, record("b")+"\n")
				victim.close(fd)
				s.checkTaken(t, "ab")
			})
			t.Run("open", func(t *testing.T) {
				fd := victim.create(path + "4")
				victim.write(fd, record("a")+"\n")
				take(other, path+"4", 0)
				victim.write(fd, record("b")+"\n")
				victim.close(fd)
				s.checkTaken(t, "ab")
			})
		})
	}
}

// checkTaken checks what has been published since it was called last.
func (s *spool) checkTaken(t *testing.T, letters string) {
	t.Helper()
	s.untilPublished()
	var want []string
	for letter := range strings.SplitSeq(letters, "") {
		want = append(want, record(letter))
	}
	got := s.published()
	checkTexts(t, "published", got[s.checked:], want)
	s.checked = len(got)
}

// TestMount_InheritedDescriptor: children that inherit one descriptor each cause
// a FLUSH, and its cost is that of what is new (design, 3.1): with twice the
// children the daemon writes about twice as much, and takes about twice as long.
func TestMount_InheritedDescriptor(t *testing.T) {
	s := newSpool(t, plainBinary, "stdout:")
	s.start()
	// Long lines show a cost that grows with what is there already.
	pad := strings.Repeat("x", 4000)
	run := func(writer string, children int) work {
		before := s.work()
		s.sh(fmt.Sprintf(`pad=%s; for ((i = 0; i < %d; i++)); do (echo '%s'$i'", "pad": "'$pad'"}'); done > $M/f`,
			pad, children, strings.TrimSuffix(numbered(writer, 0), `0"}`)))
		s.untilPublished()
		return s.work().since(before)
	}
	count := times(300, 10_000)
	run("warm", count/10)
	half, whole := run("half", count/2), run("whole", count)
	t.Logf("%d children: %+v, %d children: %+v", count/2, half, count, whole)
	if whole.bytes > 3*half.bytes {
		t.Errorf("the daemon has written %d bytes for %d children and %d for %d", half.bytes, count/2, whole.bytes, count)
	}
	if whole.ticks > 3*half.ticks+20 {
		t.Errorf("the daemon has taken %d ticks for %d children and %d for %d", half.ticks, count/2, whole.ticks, count)
	}
	if got := len(s.published()); got != count/10+count/2+count {
		t.Errorf("published %d messages, want %d", got, count/10+count/2+count)
	}
}

// work is what a process has done so far.
type work struct {
	bytes int // written, to files, pipes and the kernel
	ticks int // of processor time, of 10 ms
}

func (w work) since(o work) work { return work{w.bytes - o.bytes, w.ticks - o.ticks} }

// work tells what the daemon has done so far.
func (s *spool) work() (w work) {
	s.t.Helper()
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.daemonPID()))
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(io), "rchar: %d\nwchar: %d", new(int), &w.bytes); err != nil {
		s.t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.daemonPID()))
	if err != nil {
		s.t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var user, system int
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		s.t.Fatal(err)
	}
	w.ticks = user + system
	return w
}
