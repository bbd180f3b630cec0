package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hanwen/go-fuse/v2/posixtest"
	"golang.org/x/sys/unix"
)

// asTheyAre are the tests of go-fuse's posixtest that a spool passes under
// ordinary names.
var asTheyAre = []string{
	"FcntlFlockSetLk", "MkdirRmdir", "OpenAt", "ParallelFileOpen", "ReadDirConsistency", "RenameOverwriteDestExist",
	"RenameOverwriteDestNoExist",
}

// reopening are those that open again what they have closed, which an ordinary
// name does not outlive. They get a directory in which the name is a symbolic link
// to a held one.
var reopening = map[string]string{
	"AppendWrite": "file", "DirectIO": "file.txt", "FdLeak": "file", "FileBasic": "file", "FileLarge": "file",
	"LseekEnxioCheck": "file.bin", "LseekHoleSeeksToEOF": "file.bin", "TruncateFile": "file",
}

// rewritten are those that reopen and do more to the name than a link can stand
// for. They are done here, with held names.
var rewritten = map[string]func(t *testing.T, dir string){
	"FstatDeleted": fstatDeleted, "NlinkZero": nlinkZero, "ReadDirBasic": readDirBasic, "TruncateNoFile": truncateNoFile,
}

// leftOut are those that make no sense for a spool, and why.
var leftOut = map[string]string{
	"DirSeek":             "seeks in a listing of ordinary files that are closed, and so are not listed; ReadDirBasic lists as many held ones",
	"Fallocate":           "a file is in memory, so there is nothing to allocate: EOPNOTSUPP",
	"FallocateKeepSize":   "a file is in memory, so there is nothing to allocate: EOPNOTSUPP",
	"FcntlFlockLocksFile": "expects that a process is kept out by a lock of its own, which no local file system does",
	"Link":                "a file has one name: EPERM",
	"LinkUnlinkRename":    "a file has one name: EPERM",
	"OpenSymlinkRace":     "there are no symbolic links: EPERM",
	"RenameOpenDir":       "of a directory that another was renamed over nothing is left: ENOENT, which the test allows",
	"SetattrSymlink":      "there are no symbolic links: EPERM",
	"SymlinkReadlink":     "there are no symbolic links: EPERM",
	"Tmpfile":             "refused, so that programs make a temporary name: EOPNOTSUPP, which the test allows",
	"XAttr":               "what is no content would not be published: ENOTSUP",
	"XAttrLarge":          "what is no content would not be published: ENOTSUP",
}

// TestMount_Posix runs the part of go-fuse's posixtest that makes sense for a
// spool.
func TestMount_Posix(t *testing.T) {
	s := startSpool(t, deadBroker, "--exchange", "x")
	for name, test := range posixtest.All {
		dir, where := filepath.Join(s.dir, name), filepath.Join(s.dir, name)
		switch link, reopens := reopening[name]; {
		case leftOut[name] != "":
			t.Logf("left out: %s: %s", name, leftOut[name])
			continue
		case reopens:
			where = t.TempDir()
			if err := os.Symlink(filepath.Join(dir, "."+link), filepath.Join(where, link)); err != nil {
				t.Fatal(err)
			}
		case rewritten[name] != nil:
			test = rewritten[name]
		case !slices.Contains(asTheyAre, name):
			t.Errorf("posixtest has a new test: %s", name)
		}
		t.Run(name, func(t *testing.T) {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			test(t, where)
		})
	}
}

// hold writes a held file.
func hold(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// statOf returns what stat(2) says.
func statOf(t *testing.T, name string) (st unix.Stat_t) {
	t.Helper()
	if err := unix.Lstat(name, &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// openFile opens a file for reading, for the length of the test.
func openFile(t *testing.T, name string) (fd int) {
	t.Helper()
	fd, err := unix.Open(name, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// fstatDeleted: files that were unlinked while they are open keep what stat(2) had
// said of them.
func fstatDeleted(t *testing.T, dir string) {
	before := map[int]unix.Stat_t{}
	for i := range 10 {
		name := fmt.Sprintf("%s/.%d", dir, i)
		hold(t, name, string(make([]byte, i)))
		st := statOf(t, name)
		before[openFile(t, name)] = st
		if err := unix.Unlink(name); err != nil {
			t.Fatal(err)
		}
	}
	for fd, want := range before {
		var got unix.Stat_t
		if err := unix.Fstat(fd, &got); err != nil {
			t.Fatal(err)
		}
		want.Nlink = 0
		want.Ctim, got.Ctim = unix.Timespec{}, unix.Timespec{}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// nlinkZero: a file that another was renamed over has no link any more.
func nlinkZero(t *testing.T, dir string) {
	src, dst := dir+"/.src", dir+"/.dst"
	hold(t, src, "source")
	hold(t, dst, "dst")
	fd := openFile(t, dst)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Nlink != 1 {
		t.Errorf("before: %d links, %v", st.Nlink, err)
	}
	if err := os.Rename(src, dst); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fstat(fd, &st); err != nil || st.Nlink != 0 {
		t.Errorf("after: %d links, %v", st.Nlink, err)
	}
	if text, err := os.ReadFile(dst); err != nil || string(text) != "source" {
		t.Errorf("the name leads to %q, %v", text, err)
	}
}

// readDirBasic: a listing has what was made so far, over more than one page.
func readDirBasic(t *testing.T, dir string) {
	want := map[string]bool{}
	for i := range 110 {
		name := fmt.Sprintf(".file%036x", i)
		hold(t, filepath.Join(dir, name), "hello")
		want[name] = true
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !want[e.Name()] {
				t.Errorf("listed: %q", e.Name())
			}
		}
		if len(entries) != len(want) {
			t.Errorf("%d names are listed, want %d", len(entries), len(want))
		}
	}
}

// truncateNoFile: truncate(2) by path.
func truncateNoFile(t *testing.T, dir string) {
	name := dir + "/.file"
	hold(t, name, "hello")
	for _, size := range []int64{1, 3} {
		if err := unix.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
		if st := statOf(t, name); st.Size != size {
			t.Errorf("the size is %d, want %d", st.Size, size)
		}
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "h\x00\x00" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}
