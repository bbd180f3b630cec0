package fs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/fs/shm"
)

// moment is what a process would leave if it died now: the memory and the store.
type moment struct {
	memory *shm.Memory
	store  string
}

// freeze copies both.
func (r *rig) freeze() (moment, error) {
	fd, err := unix.MemfdCreate("copy", unix.MFD_CLOEXEC)
	if err != nil {
		return moment{}, err
	}
	if err := copySparse(fd, r.memory.FD()); err != nil {
		return moment{}, errors.Join(err, unix.Close(fd))
	}
	memory, err := shm.Open(fd)
	if err != nil {
		return moment{}, err
	}
	store, err := os.MkdirTemp(r.t.TempDir(), "")
	if err == nil {
		err = os.CopyFS(store, os.DirFS(r.store))
	}
	return moment{memory, store}, err
}

// copySparse copies the data of a file, and not its holes.
func copySparse(to, from int) error {
	end, err := unix.Seek(from, 0, unix.SEEK_END)
	if err != nil {
		return err
	}
	if err := unix.Ftruncate(to, end); err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for at := int64(0); ; {
		at, err = unix.Seek(from, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		hole, e := unix.Seek(from, at, unix.SEEK_HOLE)
		if err = errors.Join(err, e); err != nil {
			return err
		}
		for at < hole {
			n, err := unix.Pread(from, buf[:min(int64(len(buf)), hole-at)], at)
			if err != nil {
				return err
			}
			if _, err := unix.Pwrite(to, buf[:n], at); err != nil {
				return err
			}
			at += int64(n)
		}
	}
}

// numbers are ids of nodes and files: they are drawn anew when a request is
// carried out anew.
var numbers = regexp.MustCompile(`(?m)^\d+ |node \d+|file \d+|dir \d+|in \d+`)

// anonymous is a state without numbers.
func anonymous(state string) string {
	lines := strings.Split(numbers.ReplaceAllString(state, "N"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestReplay_CutAnywhere: a process that dies between any two of the stores that a
// handler makes leaves a state in which the request, when it is resent, has the
// reply and the effect that it would have had. SPOOLFS_CHAOS=1 cuts at all of
// them; otherwise at some, and the seed is logged.
func TestReplay_CutAnywhere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, tt := range replayCases {
		t.Run(tt.name, func(t *testing.T) {
			cuts := countCuts(t, tt)
			some := random.Perm(cuts)
			if os.Getenv("SPOOLFS_CHAOS") == "" {
				some = some[:min(len(some), 2)]
			}
			for _, at := range some {
				cutAt(t, tt, at)
			}
		})
	}
}

func cutRig(t *testing.T) *rig {
	r := &rig{t: t, store: t.TempDir(), epoch: time.Unix(1e9, 0), opts: Options{Commands: map[string]Command{
		"count": {Run: func() error { return nil }},
	}}}
	r.start()
	return r
}

// countCuts counts the stores that a handler makes.
func countCuts(t *testing.T, tt replayCase) int {
	r := cutRig(t)
	defer r.stop()
	s := r.serveAgain(newScript())
	request := tt.make(r, r.as(7))
	cuts := 0
	r.fs.table.OnStep(func() { cuts++ })
	r.execute(s, request, false)
	return cuts
}

// cutAt has a process die at a store, and the next one carry on.
func cutAt(t *testing.T, tt replayCase, at int) {
	t.Helper()
	r := cutRig(t)
	s := r.serveAgain(newScript())
	request := tt.make(r, r.as(7))
	var dead moment
	steps := 0
	r.fs.table.OnStep(func() {
		if steps++; steps == at+1 {
			var err error
			if dead, err = r.freeze(); err != nil {
				t.Error(err)
			}
		}
	})
	first := r.execute(s, request, false)
	want := anonymous(r.state())
	r.fs.table.OnStep(nil)
	r.stop()
	if dead.memory == nil {
		return // it makes a store more or less, by the order of a map
	}
	r.memory, r.store = dead.memory, dead.store
	r.start()
	defer r.stop()
	s = r.serveAgain(newScript())
	second := r.execute(s, again(request), true)
	if len(first) >= 8 && (len(second) < 8 || errnoOf(first) != errnoOf(second)) {
		t.Errorf("cut at %d: replies\n%x\n%x", at, first, second)
	}
	if got := anonymous(r.state()); got != want {
		t.Errorf("cut at %d:\n%s\nwant\n%s", at, got, want)
	}
	if err := r.checkRecords(); err != nil {
		t.Errorf("cut at %d: %v", at, err)
	}
}

// checkRecords sees that the memory says what the tables say.
func (r *rig) checkRecords() error {
	before := anonymous(r.state())
	r.takeOver()
	if after := anonymous(r.state()); after != before {
		return fmt.Errorf("the next process has\n%s\nafter\n%s", after, before)
	}
	return nil
}
