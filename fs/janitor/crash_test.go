package janitor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// steps are all the steps of a file's way.
var steps = []string{"claim", "claimed", "store", "stored", "finish", "removed"}

// TestJanitor_EveryStep proves J1: the process dies at each step, at the first
// and at a later file, and the next one loses nothing and repeats nothing but
// with the same ids.
func TestJanitor_EveryStep(t *testing.T) {
	const files = 10
	for _, step := range steps {
		for _, at := range []int64{1, 7} {
			if at > 1 && strings.HasPrefix(step, "store") {
				continue // a batch, not a file
			}
			t.Run(fmt.Sprintf("%s %d", step, at), func(t *testing.T) {
				t.Parallel()
				c := child{Dir: t.TempDir(), Store: t.TempDir(), ID: NewID(), Age: none, ClaimTimeout: time.Hour, Crash: step, At: at}
				for i := range files {
					text := record(fmt.Sprint(i, "/a")) + record(fmt.Sprint(i, "/b"))
					if err := os.WriteFile(filepath.Join(c.Dir, fmt.Sprint("f", i)), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				cmd := c.start(t)
				if err := cmd.Wait(); cmd.ProcessState.Success() || !strings.Contains(fmt.Sprint(err), "killed") {
					t.Fatalf("the first run ended with %v", err)
				}
				c.Crash = ""
				finish(t, c.Dir, c.start(t))
				pending, _ := stored(t, c.Store)
				once, repeats := checkRepeats(t, pending)
				if len(once) != 2*files {
					t.Errorf("%d of %d messages arrived", len(once), 2*files)
				}
				if repeats > 2*files {
					t.Errorf("%d repeats", repeats)
				}
			})
		}
	}
}

// finish waits until a directory is empty and ends the processes then.
func finish(t testing.TB, dir string, cmds ...*exec.Cmd) {
	t.Helper()
	defer func() {
		for _, cmd := range cmds {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}()
	waitFor(t, "empty directory", func() bool { return len(filesBelow(t, dir)) == 0 })
}

// filesBelow lists the files of a directory, claimed or not. A claim that gets
// another name meanwhile counts, since there may be files in it.
func filesBelow(t testing.TB, dir string) []string {
	var names []string
	filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			names = append(names, path)
		case e.Name() == quarantineName:
			return filepath.SkipDir
		case !e.IsDir():
			names = append(names, path)
		}
		return nil
	})
	return names
}

// TestJanitors_Killed proves J1 to J3: three janitors in processes of their own
// empty one directory and are killed at random, by steps and from outside, while
// writers reuse the names of hosts and processes that collide, keep files open,
// append to them, rename them and tear them.
func TestJanitors_Killed(t *testing.T) {
	files := 2000
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		files = 20_000
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	w := &writers{dir: dir, age: 2 * time.Second, whole: map[string]bool{}}
	var writing sync.WaitGroup
	const writerCount = 8
	for i := range writerCount {
		writing.Go(func() { w.write(t, i, files/writerCount, rand.New(rand.NewPCG(seed, uint64(i+1)))) })
	}
	k := newKillers(t, dir, w.age, random)
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	k.run(done, 20)
	finish(t, dir, k.cmds...)
	var pending, partial []arrival
	for _, c := range k.children {
		messages, torn := stored(t, c.Store)
		pending, partial = append(pending, messages...), append(partial, torn...)
	}
	once, repeats := checkRepeats(t, pending)
	for line := range w.whole {
		if once[line] == "" {
			t.Errorf("lost: %s", line)
		}
	}
	for line := range once {
		if !w.whole[line] {
			t.Errorf("nobody wrote %q", line)
		}
	}
	tornOnce, _ := checkRepeats(t, partial)
	if len(tornOnce) != w.torn {
		t.Errorf("%d torn lines were set aside, want %d", len(tornOnce), w.torn)
	}
	aside, err := os.ReadDir(filepath.Join(dir, quarantineName))
	if got := len(aside) - 1; err != nil || got != w.useless {
		t.Errorf("%d files without a message were set aside, want %d, %v", got, w.useless, err)
	}
	t.Logf("%d messages, %d repeats, %d torn, %d kills, deaths at %v, %d files not judged", len(once), repeats, w.torn, k.kills, k.deaths, w.late)
	if k.kills == 0 || w.torn == 0 || k.deaths[""] > 0 {
		t.Error("nothing was killed or torn, or something died of itself")
	}
}

// killers are the janitors of the test.
type killers struct {
	t        testing.TB
	random   *rand.Rand
	children []child
	cmds     []*exec.Cmd
	ended    []chan struct{}
	crashes  []string // the step at which each is going to die, if at any
	starts   int
	kills    int            // from outside
	deaths   map[string]int // by step
}

func newKillers(t testing.TB, dir string, age time.Duration, random *rand.Rand) *killers {
	k := &killers{t: t, random: random, deaths: map[string]int{}}
	for range 3 {
		k.children = append(k.children, child{
			Dir: dir, Store: t.TempDir(), ID: NewID(), Age: age, ClaimTimeout: 3 * time.Second,
		})
		k.cmds, k.ended, k.crashes = append(k.cmds, nil), append(k.ended, nil), append(k.crashes, "")
	}
	return k
}

func (k *killers) start(i int) {
	c := k.children[i]
	if k.starts++; k.starts%2 == 0 { // each step in turn
		c.Crash, c.At = steps[k.starts/2%len(steps)], int64(1+k.random.IntN(100))
		if strings.HasPrefix(c.Crash, "store") {
			c.At = int64(1 + k.random.IntN(3)) // it is taken for a batch
		}
	}
	cmd, ended := c.start(k.t), make(chan struct{})
	k.crashes[i] = c.Crash
	k.cmds[i], k.ended[i] = cmd, ended
	go func() { defer close(ended); cmd.Wait() }()
}

// run kills and restarts until the writers are done, and then a number of times
// more as long as anything is left, and leaves three janitors that live.
func (k *killers) run(done chan struct{}, more int) {
	for i := range k.children {
		k.start(i)
	}
	for more > 0 {
		pause := time.NewTimer(time.Duration(50+k.random.IntN(400)) * time.Millisecond)
		<-pause.C
		select {
		case <-done:
			if more--; len(filesBelow(k.t, k.children[0].Dir)) == 0 {
				more = 0
			}
		default:
		}
		i := k.random.IntN(len(k.children))
		k.kill(i)
		k.start(i)
	}
	for i := range k.children {
		k.kill(i)
		k.children[i].Crash = ""
		k.cmds[i] = k.children[i].start(k.t)
	}
}

func (k *killers) kill(i int) {
	select {
	case <-k.ended[i]:
		k.deaths[k.crashes[i]]++
		return
	default:
	}
	k.cmds[i].Process.Kill()
	<-k.ended[i]
	k.kills++
}

// writers write files into the directory.
type writers struct {
	dir string
	age time.Duration

	mu    sync.Mutex
	whole map[string]bool // lines that were written wholly
	torn  int             // files with a message and half a one
	late  int             // files whose writer was slower than the age: anything may be in them

	useless int // files with half a message
}

// write writes files, each in one of several ways. Names collide: there are only
// a few hosts and processes.
func (w *writers) write(t testing.TB, writer, files int, random *rand.Rand) {
	for n := range files {
		host, pid := random.IntN(3), random.IntN(50)
		name := filepath.Join(w.dir, fmt.Sprintf("post_retry.host%d.%d", host, pid+50*writer))
		var lines []string
		for i := range 1 + random.IntN(3) {
			lines = append(lines, record(fmt.Sprintf("%d/%d/%d", writer, n, i)))
		}
		if err := w.writeFile(name, lines, random); err != nil {
			t.Error(err)
			return
		}
	}
}

func (w *writers) writeFile(name string, lines []string, random *rand.Rand) error {
	// The name may be in use by an earlier file that nobody has taken yet: then
	// this is one more writer that appends.
	switch way := random.IntN(4); way {
	case 0: // open all the time
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		for _, line := range lines {
			if err := w.put(f, line, time.Duration(random.IntN(10))*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	case 1: // renamed
		if err := os.WriteFile(name+".tmp", []byte(strings.Join(lines, "")), 0o600); err != nil {
			return err
		}
		w.note(lines)
		return os.Rename(name+".tmp", fmt.Sprintf("%s.%d", name, random.Uint64()))
	case 2: // torn: its writer dies within the last line
		name = fmt.Sprintf("%s.%d", name, random.Uint64())
		last := lines[len(lines)-1]
		w.note(lines[:len(lines)-1])
		w.mu.Lock()
		if len(lines) > 1 {
			w.torn++
		} else {
			w.useless++
		}
		w.mu.Unlock()
		text := strings.Join(lines[:len(lines)-1], "") + last[:len(last)-3]
		return os.WriteFile(name, []byte(text), 0o600)
	}
	return w.appendSlowly(name, lines)
}

// put writes a line in two pieces.
func (w *writers) put(f *os.File, line string, pause time.Duration) error {
	half := len(line) / 2
	if _, err := f.WriteString(line[:half]); err != nil {
		return err
	}
	time.Sleep(pause)
	if _, err := f.WriteString(line[half:]); err != nil {
		return err
	}
	w.note([]string{line})
	return nil
}

func (w *writers) note(lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range lines {
		w.whole[line] = true
	}
}

// appendSlowly opens and closes the file for each half of a line.
func (w *writers) appendSlowly(name string, lines []string) error {
	name = fmt.Sprintf("%s.%d", name, time.Now().UnixNano())
	last := time.Now()
	for _, line := range lines {
		for _, half := range []string{line[:len(line)/2], line[len(line)/2:]} {
			f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				return err
			}
			_, err = f.WriteString(half)
			f.Close()
			if err != nil {
				return err
			}
			if time.Since(last) > w.age/2 {
				w.mu.Lock()
				w.late++
				w.mu.Unlock()
			}
			last = time.Now()
		}
	}
	w.note(lines)
	return nil
}
