package janitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/queue"
)

// TestOpenPath proves J4: a symbolic link is followed if it is there at the start,
// and never one that comes later, in the place of a directory or before it.
func TestOpenPath(t *testing.T) {
	dir := t.TempDir()
	real, secret, link, gone := filepath.Join(dir, "real"), t.TempDir(), filepath.Join(dir, "link"), filepath.Join(dir, "sub/gone")
	for _, err := range []error{os.Mkdir(real, 0o755), os.Symlink("real", link), os.Mkdir(filepath.Join(dir, "sub"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	opens := map[string]func() (int, error){"the link": OpenPath(link), "the directory": OpenPath(real), "the missing one": OpenPath(gone)}
	try := func(what string, want error) {
		t.Helper()
		fd, err := opens[what]()
		if err == nil {
			unix.Close(fd)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	try("the link", nil)
	try("the directory", nil)
	try("the missing one", unix.ENOENT)
	for _, err := range []error{
		os.Remove(link), os.Symlink(secret, link), // nobody asks it any more
		os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "sub2")), os.Symlink(secret, filepath.Join(dir, "sub")),
		os.Mkdir(filepath.Join(secret, "gone"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	try("the link", nil)
	try("the missing one", errMoved) // through a link above it
	if err := errors.Join(os.Remove(real), os.Symlink(secret, real)); err != nil {
		t.Fatal(err)
	}
	try("the link", errMoved)
	try("the directory", errMoved)
}

// TestJanitor_DirectoryReplaced proves J4: while a pass is at work the directory
// is moved away, and a link to one of somebody else's is put in its place. The pass
// goes on where it was, and the next one takes nothing.
func TestJanitor_DirectoryReplaced(t *testing.T) {
	r := newRig(t, Options{Age: none})
	for i, name := range []string{"a", "b", "c"} {
		r.write(name, record(name))
		r.old(name, time.Hour-time.Duration(i)*time.Minute)
	}
	secret, moved := t.TempDir(), filepath.Join(t.TempDir(), "moved")
	if err := os.WriteFile(filepath.Join(secret, "secret"), []byte(record("secret")), 0o600); err != nil {
		t.Fatal(err)
	}
	r.j.opts.step = func(step string) {
		if step == "store" {
			r.j.opts.step = func(string) {}
			if err := errors.Join(os.Rename(r.dir, moved), os.Symlink(secret, r.dir)); err != nil {
				t.Error(err)
			}
		}
	}
	r.pass()
	check(t, "messages", r.paths(), []string{"a", "b", "c"})
	if left := filesBelow(t, moved); len(left) > 0 {
		t.Errorf("left where they were: %q", left)
	}
	if _, err := r.j.Pass(context.Background()); !errors.Is(err, errMoved) {
		t.Errorf("the next pass ended with %v", err)
	}
	if err := r.j.Close(); err != nil {
		t.Errorf("the end: %v", err)
	}
	if left := filesBelow(t, secret); len(left) != 1 || len(r.paths()) != 3 {
		t.Errorf("of the secret directory %q is left, and there are %q", left, r.paths())
	}
}

// TestJanitor_Vanishes: the directory goes and comes again while the janitor
// runs, and when it ends.
func TestJanitor_Vanishes(t *testing.T) {
	r := newRig(t, Options{Age: none})
	r.write("a", record("a"))
	r.pass()
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := r.j.Pass(context.Background()); !errors.Is(err, unix.ENOENT) {
		t.Errorf("without a directory the pass ends with %v", err)
	}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.write("b", record("b"))
	r.pass()
	check(t, "messages", r.paths(), []string{"a", "b"})
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	if err := r.j.Close(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// TestJanitor_PlantedClaim proves J4: in a directory that users can write to, a
// private directory that is ours is not taken for a claim because somebody has
// given it such a name.
func TestJanitor_PlantedClaim(t *testing.T) {
	r := newRig(t, Options{Age: none})
	if err := os.Chmod(r.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{freeID, r.j.opts.ID, strings.Repeat("d", idLength)} {
		name := claimPrefix + id + ".x"
		if err := os.Mkdir(r.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
		r.write(name+"/secret", record("secret"))
	}
	r.write("f", record("f"))
	r.write("garbage", "garbage\n")
	r.pass()
	clock := r.j.opts.clock.mono
	r.j.opts.clock.mono = later(clock, time.Hour)
	r.pass()
	check(t, "messages", r.paths(), []string{"f"})
	if n := len(filesBelow(t, r.dir)); n != 3 {
		t.Errorf("%d files are left, want 3: %q", n, filesBelow(t, r.dir))
	}
	if inside, err := os.ReadDir(r.path(quarantineName)); err != nil || len(inside) != 2 {
		t.Errorf("the quarantine has %v, %v", inside, err)
	}
}

// TestJanitor_YoungInClaim proves J2: what came into a claim in the place of a file
// is put back until it has settled, and stays where it is while its name is in use.
func TestJanitor_YoungInClaim(t *testing.T) {
	r := newRig(t, Options{})
	claim := claimPrefix + freeID + ".x"
	if err := os.Mkdir(r.path(claim), ownMode&0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old", "young", "again"} {
		r.write(claim+"/"+name, record(name))
	}
	r.old(claim+"/old", time.Hour)
	r.write("again", record("another"))
	r.pass()
	check(t, "messages", r.paths(), []string{"old"})
	if s := r.j.Stats(); s.Young != 3 {
		t.Errorf("%d files are young, want 3", s.Young)
	}
	left := filesBelow(t, r.dir)
	if len(left) != 3 || !strings.HasSuffix(left[0], "/again") || !strings.HasSuffix(left[1], "/again") || left[2] != r.path("young") {
		t.Errorf("left: %q", left)
	}
}

// TestClaim_PutBackTwice: on a file system that cannot rename without replacing a
// crash may leave a file under both names: it is one file still.
func TestClaim_PutBackTwice(t *testing.T) {
	r := newRig(t, Options{Age: none})
	claim := claimPrefix + freeID + ".x"
	if err := os.Mkdir(r.path(claim), ownMode&0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	r.write("f", record("f"))
	if err := os.Link(r.path("f"), r.path(claim+"/f")); err != nil {
		t.Fatal(err)
	}
	r.pass()
	r.pass()
	check(t, "messages", r.paths(), []string{"f"})
	check(t, "left", r.names(), nil)
}

// TestJanitor_OwnersLease: a user who has a lease on a file of his holds up
// nobody, and his file is taken later.
func TestJanitor_OwnersLease(t *testing.T) {
	r := newRig(t, Options{Age: none})
	r.write("f", record("f"))
	r.write("g", record("g"))
	fd, err := unix.Open(r.path("f"), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}
	r.pass()
	check(t, "messages", r.paths(), []string{"g"})
	if s := r.j.Stats(); s.Busy != 1 || s.Others != 0 {
		t.Errorf("the stats are %+v", s)
	}
	unix.Close(fd)
	r.pass()
	check(t, "messages", r.paths(), []string{"g", "f"})
}

// TestIsWritten: where a lease is the server's to give, one that is refused says
// nothing about writers, or nothing would ever be taken there.
func TestIsWritten(t *testing.T) {
	for fs, want := range map[int64]bool{
		unix.NFS_SUPER_MAGIC: false, unix.SMB2_SUPER_MAGIC: false, unix.CIFS_SUPER_MAGIC: false,
		unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.TMPFS_MAGIC: true, 0: true,
	} {
		if got := isWritten(unix.EAGAIN, fs); got != want {
			t.Errorf("%#x: %t, want %t", fs, got, want)
		}
		if isWritten(unix.EINVAL, fs) {
			t.Errorf("%#x: written to, where there are no leases", fs)
		}
	}
}

// TestJanitor_Grows proves J2: a file that has grown, or is another one, since it
// was listed is left for the next pass.
func TestJanitor_Grows(t *testing.T) {
	for name, change := range map[string]func(r *rig) error{
		"grows": func(r *rig) error {
			f, err := os.OpenFile(r.path("f"), os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.WriteString("x")
				err = errors.Join(err, f.Close())
			}
			return err
		},
		"is written over": func(r *rig) error { return os.WriteFile(r.path("f"), []byte(record("g")), 0o600) },
		"is replaced": func(r *rig) error {
			return errors.Join(os.WriteFile(r.path("g.tmp"), []byte(record("g")), 0o600), os.Rename(r.path("g.tmp"), r.path("f")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{Age: none})
			r.write("f", record("f"))
			r.old("f", time.Hour)
			st, err := statAt(unix.AT_FDCWD, r.path("f"))
			if err == nil {
				err = change(r)
			}
			if err != nil {
				t.Fatal(err)
			}
			fd, err := r.j.opts.Open()
			if err != nil {
				t.Fatal(err)
			}
			top := &directory{fd: fd}
			defer top.close()
			if err := r.j.begin(top, none); err != nil {
				t.Fatal(err)
			}
			l := newListing(10)
			l.add("f", st)
			if err := r.j.emptyInto(context.Background(), top, l); err != nil {
				t.Fatal(err)
			}
			if s := r.j.Stats(); s.Busy != 1 || s.FilesTotal != 0 || len(r.messages(queue.Pending)) > 0 {
				t.Errorf("the stats are %+v", s)
			}
			check(t, "left", r.names(), []string{"f"})
		})
	}
}
