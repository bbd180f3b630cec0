package janitor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/queue"
)

// none takes whatever nobody has open.
const none = -time.Nanosecond

// TestJanitor_Takes: messages come out, oldest first, credited to the owner, and
// the files are gone; what is young, held, empty or of another kind stays.
func TestJanitor_Takes(t *testing.T) {
	r := newRig(t, Options{})
	r.write("young", record("young"))
	for i, name := range []string{"c", "a", strings.Repeat("n", 255)} {
		r.write(name, record(fmt.Sprintf("%d/x", i))+record(fmt.Sprintf("%d/y", i)))
		r.old(name, time.Hour-time.Duration(i)*time.Minute)
	}
	for _, name := range []string{".held", "held.tmp", "held.part", "held.inflight"} {
		r.write(name, record("held"))
		r.old(name, time.Hour)
	}
	r.write("empty", "")
	r.old("empty", time.Hour)
	if err := os.Chown(r.path("a"), 64001, 64001); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.path("sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.write("sub/file", record("sub"))
	r.old("sub/file", time.Hour)
	r.pass() // sees them, and that they were touched just now
	if got := r.paths(); len(got) > 0 {
		t.Fatalf("took %q though they were touched just now", got)
	}
	r.j.settler.clock.mono = later(r.j.settler.clock.mono, time.Minute)
	// Or it would look as if the file server's clock had jumped.
	r.j.settler.known = false
	r.pass()
	check(t, "messages", r.paths(), []string{"0/x", "0/y", "1/x", "1/y", "2/x", "2/y"})
	check(t, "left", r.names(), []string{".held", "held.inflight", "held.part", "held.tmp", "sub", "young"})
	for _, m := range r.messages(queue.Pending) {
		if uid := map[bool]uint32{true: 64001}[m.File == "a"]; m.UID != uid || m.ID == "" || m.Ingested.IsZero() {
			t.Errorf("%s has the id %q and is of user %d", m.File, m.ID, m.UID)
		}
	}
	if s := r.j.Stats(); s.FilesTotal != 4 || s.MessagesTotal != 6 || s.Young != 1 {
		t.Errorf("the stats are %+v", s)
	}
}

func later(clock func() time.Duration, d time.Duration) func() time.Duration {
	return func() time.Duration { return clock() + d }
}

// TestJanitor_SetsAside: a file without a message goes to the quarantine, with its
// reason; of others only what is no message becomes a dead letter.
func TestJanitor_SetsAside(t *testing.T) {
	r := newRig(t, Options{Age: none, FileLimit: 2 << 20})
	r.write("mixed", record("a")+"garbage\n"+record("b")+`{"torn`)
	r.write("garbage", "garbage\n")
	r.write("REASONS", "garbage\n")
	r.write("large", strings.Repeat(record("x"), (2<<20)/len(record("x"))+1))
	r.write("many", strings.Repeat(record("m"), (2<<20)/100))
	r.write(".forgotten", record("x"))
	r.old(".forgotten", 25*time.Hour)
	r.pass()
	r.write("garbage", "more garbage\n")
	r.pass()
	check(t, "left", r.names(), []string{quarantineName})
	inside, err := os.ReadDir(r.path(quarantineName))
	if err != nil || len(inside) != 6 {
		t.Errorf("the quarantine has %v, %v", inside, err)
	}
	reasons, err := os.ReadFile(r.path(quarantineName + "/REASONS"))
	for _, want := range []string{`"garbage": not-json`, `"large": too-large`, `".forgotten": abandoned`} {
		if err != nil || !strings.Contains(string(reasons), want) {
			t.Errorf("REASONS has no %s, %v:\n%s", want, err, reasons)
		}
	}
	if s := r.j.Stats(); s.DeadTotal != 1 || s.PartialTotal != 1 || s.QuarantinedTotal != 5 || s.MessagesTotal != 2+(2<<20)/100 {
		t.Errorf("the stats are %+v", s)
	}
	if dead := r.messages(queue.Dead); len(dead) != 1 || string(dead[0].Body) != "garbage\n" {
		t.Errorf("dead letters: %+v", dead)
	}
	if partial := r.messages(queue.Partial); len(partial) != 1 || string(partial[0].Body) != `{"torn` {
		t.Errorf("partial files: %+v", partial)
	}
}

// TestJanitor_Open proves J2: a file that somebody has open for writing stays
// until it is closed, whatever its age.
func TestJanitor_Open(t *testing.T) {
	r := newRig(t, Options{Age: none})
	r.write("f", record("a"))
	r.old("f", time.Hour)
	f, err := os.OpenFile(r.path("f"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.pass()
	if s := r.j.Stats(); s.Busy != 1 || s.FilesTotal != 0 {
		t.Errorf("while it is open the stats are %+v", s)
	}
	if _, err := f.WriteString(record("b")); err != nil {
		t.Fatal(err)
	}
	f.Close()
	r.pass()
	check(t, "messages", r.paths(), []string{"a", "b"})
	check(t, "left", r.names(), nil)
}

// TestJanitor_OpenedLate proves J2: a file that is written once more after it was
// read is not removed, and is taken again.
func TestJanitor_OpenedLate(t *testing.T) {
	r := newRig(t, Options{Age: none})
	r.write("f", record("a"))
	f, err := os.OpenFile(r.path("f"), os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	written := make(chan error, 1)
	r.j.opts.step = func(step string) {
		if step != "stored" || r.j.Stats().FilesTotal > 0 {
			return
		}
		r.j.opts.step = func(string) {}
		go func() {
			// Who has it open can open it again for writing, and has to wait.
			w, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = w.WriteString(record("b"))
				w.Close()
			}
			written <- err
		}()
		waitFor(t, "somebody who waits for the file", func() bool {
			text, err := os.ReadFile("/proc/locks")
			return err == nil && strings.Contains(string(text), "BREAKING")
		})
	}
	r.pass()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	r.pass()
	check(t, "messages", r.paths(), []string{"a", "a", "b"})
	check(t, "left", r.names(), nil)
	if s := r.j.Stats(); s.ChangedTotal != 1 {
		t.Errorf("the stats are %+v", s)
	}
}

func waitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within a minute", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// TestJanitor_Hostile proves J4: what is no plain file with one name stays, and
// nothing of others comes to light.
func TestJanitor_Hostile(t *testing.T) {
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprint("bare ", bare), func(t *testing.T) {
			r := newRig(t, Options{Age: none, Bare: bare, FileLimit: 1 << 20})
			secret := t.TempDir() + "/secret"
			if err := os.WriteFile(secret, []byte(record("secret")), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{
				os.Symlink(secret, r.path("symlink")), os.Symlink("/etc", r.path("symlinked")), os.Symlink("loop", r.path("loop")),
				os.Link(secret, r.path("hardlink")), unix.Mkfifo(r.path("fifo"), 0o666),
				os.Symlink(t.TempDir(), r.path(quarantineName)),
				os.Mkdir(r.path(claimPrefix+freeID+".mine"), 0o777),
				os.Mkdir(r.path(claimPrefix+r.j.opts.ID+".mine"), 0o777),
				os.Symlink("/etc", r.path(claimPrefix+freeID+".link")),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, id := range []string{freeID, r.j.opts.ID} {
				if err := os.Chmod(r.path(claimPrefix+id+".mine"), 0o777); err != nil {
					t.Fatal(err)
				}
				r.write(claimPrefix+id+".mine/f", record("planted"))
			}
			r.write(strings.Repeat("é", 127)+"\n", record("odd"))
			r.write("garbage", "garbage\n")
			deep := r.dir
			for range 200 {
				deep += "/d"
				if err := os.Mkdir(deep, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			big, err := os.Create(r.path("huge"))
			if err != nil {
				t.Fatal(err)
			}
			if err := big.Truncate(1 << 40); err != nil {
				t.Log(err)
			}
			big.Close()
			r.pass()
			r.pass()
			check(t, "messages", r.paths(), []string{"odd"})
			s := r.j.Stats()
			if s.Linked != 1 || s.LastError != "" || bare && s.Large != 1 {
				t.Errorf("the stats are %+v", s)
			}
			if text, err := os.ReadFile(secret); err != nil || string(text) != record("secret") {
				t.Errorf("the secret is %q, %v", text, err)
			}
		})
	}
}

// TestJanitor_Swaps proves J4: at the moment when a file is claimed a user has
// put something else in its place. That is neither published as the file nor
// lost.
func TestJanitor_Swaps(t *testing.T) {
	for name, swap := range map[string]func(r *rig) error{
		"another file": func(r *rig) error {
			r.write("g", record("g"))
			return os.Rename(r.path("g"), r.path("f"))
		},
		"a directory": func(r *rig) error {
			if err := os.Remove(r.path("f")); err != nil {
				return err
			}
			return os.Mkdir(r.path("f"), 0o700)
		},
		"a link to a directory": func(r *rig) error {
			if err := os.Remove(r.path("f")); err != nil {
				return err
			}
			return os.Symlink("/etc", r.path("f"))
		},
		"a second name": func(r *rig) error { return os.Link(r.path("f"), r.path("f2")) },
		"nothing":       func(r *rig) error { return os.Remove(r.path("f")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{Age: none})
			r.write("f", record("f"))
			r.j.opts.step = func(step string) {
				if step == "claim" {
					r.j.opts.step = func(string) {}
					if err := swap(r); err != nil {
						t.Error(err)
					}
				}
			}
			r.pass()
			r.pass()
			r.pass()
			got := fmt.Sprint(r.paths(), r.names())
			want := map[string]string{
				"another file": "[g] []", "a directory": "[] [f]", "a link to a directory": "[] [f]",
				"a second name": "[] [f f2]", "nothing": "[] []",
			}[name]
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// TestJanitor_TakesOver proves J3 and J5: claims of the same store, and those that
// were given up, are taken at once; those of others when they have not been
// renewed for the timeout, and not while they are.
func TestJanitor_TakesOver(t *testing.T) {
	r := newRig(t, Options{Age: none})
	dead := strings.Repeat("d", idLength)
	for _, id := range []string{r.j.opts.ID, freeID, dead} {
		dir := r.path(claimPrefix + id + ".x")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		r.write(claimPrefix+id+".x/"+id, record(id))
	}
	r.pass()
	if got := r.paths(); len(got) != 2 {
		t.Errorf("took %q at once", got)
	}
	clock := r.j.opts.clock.mono
	step := r.j.foreign.timeout - time.Second
	for i := 1; i <= 3; i++ { // renewed in time
		r.old(claimPrefix+dead+".x", time.Hour-time.Duration(i)*time.Second)
		r.j.opts.clock.mono = later(clock, time.Duration(i)*step)
		r.pass()
	}
	if got := r.paths(); len(got) != 2 {
		t.Errorf("took %q though one was renewed", got)
	}
	r.j.opts.clock.mono = later(clock, 4*step+2*time.Second)
	r.pass()
	check(t, "messages", r.paths()[2:], []string{dead})
	check(t, "left", r.names(), nil)
	if want := string(fileID(dead, []byte(record(dead))).MessageID(1)); string(r.messages(queue.Pending)[2].ID) != want {
		t.Errorf("the id is %s, want %s, as if it had been taken where it was", r.messages(queue.Pending)[2].ID, want)
	}
}

// TestJanitor_Stops: what a stop leaves claimed is free for anybody.
func TestJanitor_Stops(t *testing.T) {
	r := newRig(t, Options{Age: none})
	for i := range 2 * batchFiles {
		r.write(fmt.Sprint(i), record(fmt.Sprint(i)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.j.opts.step = func(step string) {
		if step == "store" {
			cancel()
		}
	}
	if _, err := r.j.Pass(ctx); err == nil {
		t.Error("the pass ended well")
	}
	r.j.Close()
	other := r.janitor(Options{Age: none})
	if _, err := other.Pass(context.Background()); err != nil {
		t.Fatal(err)
	}
	check(t, "left", r.names(), nil)
	seen := map[string]bool{}
	for _, m := range r.messages(queue.Pending) {
		seen[string(m.ID)] = true
	}
	if len(seen) != 2*batchFiles {
		t.Errorf("%d of %d files arrived", len(seen), 2*batchFiles)
	}
}
