package fs

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// TestDir_Tree proves F10: users make directories, nested, and move and remove
// them; files in them go where those of the root go.
func TestDir_Tree(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	a := u.mustMkdir("a", 0o755)
	b := a.mustMkdir("b", 0o755)
	b.put("f", line("f"))
	if _, st := u.mkdir("a", 0o755); st != fuse.Status(syscall.EEXIST) {
		t.Errorf("mkdir of what is there: %v", st)
	}
	if st := u.rmdir("a"); st != fuse.Status(syscall.ENOTEMPTY) {
		t.Errorf("rmdir of a directory with a directory in it: %v", st)
	}
	if st := u.move("a", b.dir, "x", 0); st != fuse.EINVAL {
		t.Errorf("move of a directory into itself: %v", st)
	}
	open := b.mustCreate("g")
	if st := a.rmdir("b"); st != fuse.Status(syscall.ENOTEMPTY) {
		t.Errorf("rmdir of a directory with an open file: %v", st)
	}
	if st := a.move("b", rootNode, "c", 0); !st.Ok() {
		t.Errorf("move: %v", st)
	}
	if node, st := b.lookup("g"); node != open.node {
		t.Errorf("the open file after the move: node %d, %v", node, st)
	}
	open.close()
	if names, st := a.list(); !st.Ok() || len(names) != 0 {
		t.Errorf("a lists %q, %v", names, st)
	}
	if names, _ := r.as(0).list(); !slices.Equal(names, []string{".status", "a", "c"}) {
		t.Errorf("the root lists %q", names)
	}
	for _, name := range []string{"a", "c"} {
		if st := u.rmdir(name); !st.Ok() {
			t.Errorf("rmdir %s: %v", name, st)
		}
	}
	if _, st := b.create("late", 0); st != fuse.ENOENT {
		t.Errorf("create in a removed directory: %v", st)
	}
	r.wantBodies(line("f"))
	if got := r.fs.usage.held(); got != (holding{}) || len(r.fs.dirs) != 1+standingDirs {
		t.Errorf("still in use: %+v, %d directories", got, len(r.fs.dirs))
	}
}

// TestDir_SurvivesRestart: directories stay until their rmdir, with owner and
// mode, and held files in them keep their place, also when they were moved.
func TestDir_SurvivesRestart(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(7)
	a := u.mustMkdir("a", 0o755)
	b := a.mustMkdir("b", 0o700)
	gone := u.mustMkdir("gone", 0o755)
	if st := u.chmod(a.dir, 0o1777); !st.Ok() {
		t.Fatal(st)
	}
	b.put(".x", line("x"))
	if st := a.move("b", gone.dir, "c", 0); !st.Ok() {
		t.Fatal(st)
	}
	if st := u.move("gone", rootNode, "d", 0); !st.Ok() {
		t.Fatal(st)
	}
	r.restart()
	u = r.as(7)
	for path, mode := range map[string]uint32{"a": 0o1777, "d": 0o755, "d/c": 0o700} {
		d := u
		var attr fuse.Attr
		for name := range strings.SplitSeq(path, "/") {
			node, at, st := d.stat(name)
			if !st.Ok() {
				t.Fatalf("%s of %s: %v", name, path, st)
			}
			d, attr = d.in(node), at
		}
		if attr.Uid != 7 || attr.Gid != 7 || attr.Mode != syscall.S_IFDIR|mode {
			t.Errorf("%s is of user %d and group %d and has mode %o, want %o", path, attr.Uid, attr.Gid, attr.Mode, mode)
		}
		if path == "d/c" {
			if st := d.rename(".x", "x"); !st.Ok() {
				t.Errorf("rename of the held file: %v", st)
			}
		}
	}
	if _, st := u.lookup("gone"); st != fuse.ENOENT {
		t.Errorf("the old name: %v", st)
	}
	for m, err := range r.route.Pending() {
		if err != nil || m.File != "d/c/x" {
			t.Errorf("the message is of file %q, %v", m.File, err)
		}
	}
	r.wantBodies(line("x"))
}

// TestDir_Standing: +0 to +255 are there and hidden, each has names of its own, and
// nobody removes or moves them.
func TestDir_Standing(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	seen := map[uint64]bool{}
	for _, name := range []string{"+0", "+7", "+255"} {
		node, attr, st := u.stat(name)
		if !st.Ok() || attr.Mode != syscall.S_IFDIR|dirMode || seen[node] {
			t.Fatalf("%s: node %d, mode %o, %v", name, node, attr.Mode, st)
		}
		seen[node] = true
		if st := u.rmdir(name); st != fuse.EPERM {
			t.Errorf("rmdir %s: %v", name, st)
		}
		if st := r.as(0).rename(name, "x"); st != fuse.EPERM {
			t.Errorf("rename %s: %v", name, st)
		}
		if st := r.as(0).chmod(node, 0o777); st != fuse.EPERM {
			t.Errorf("chmod %s: %v", name, st)
		}
		f, st := u.in(node).create("f", syscall.O_EXCL)
		if !st.Ok() {
			t.Fatalf("create in %s: %v", name, st)
		}
		f.writeAt(line(name), 0)
		defer f.close()
	}
	for _, name := range []string{"+256", "+00", "+", "+1x"} {
		if _, st := u.lookup(name); st != fuse.ENOENT {
			t.Errorf("%s: %v", name, st)
		}
	}
	if names, _ := r.as(0).list(); !slices.Equal(names, []string{".status"}) {
		t.Errorf("the root lists %q", names)
	}
}

// TestDir_BeatsPrivateNames: a directory is there for all, whatever others call
// their files; what they wrote is published all the same.
func TestDir_BeatsPrivateNames(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate("x")
	f.writeAt(line("f"), 0)
	d := r.as(2).mustMkdir("x", 0o755)
	if node, st := r.as(1).lookup("x"); !st.Ok() || node != d.dir {
		t.Errorf("user 1 finds node %d, %v", node, st)
	}
	if _, st := r.as(1).mkdir("x", 0o755); st != fuse.Status(syscall.EEXIST) {
		t.Errorf("user 1 makes it too: %v", st)
	}
	f.close()
	r.wantBodies(line("f"))
}

// TestDir_Modes: the modes of directories decide, on all of the way, and who made
// one may remove it.
func TestDir_Modes(t *testing.T) {
	r := newRig(t, Options{})
	u, v, root := r.as(1), r.as(2), r.as(0)
	private := u.mustMkdir("private", 0o700)
	within := private.mustMkdir("within", 0o777)
	public := u.mustMkdir("public", 0o777)
	readable := u.mustMkdir("readable", 0o755)
	sticky := u.mustMkdir("sticky", 0o1777)
	theirs := v.in(sticky.dir).mustMkdir("theirs", 0o755)
	for what, tt := range map[string]struct{ got, want fuse.Status }{
		"lookup in a private one":             {second(v.in(private.dir).lookup("within")), fuse.EACCES},
		"create in a private one":             {second(v.in(private.dir).create("f", 0)), fuse.EACCES},
		"create below a private one":          {second(v.in(within.dir).create("f", 0)), fuse.EACCES},
		"create in a public one":              {closed(v.in(public.dir).create("f", 0)), fuse.OK},
		"create in a readable one":            {second(v.in(readable.dir).create("f", 0)), fuse.EACCES},
		"mkdir in a readable one":             {second(v.in(readable.dir).mkdir("d", 0o755)), fuse.EACCES},
		"list of a readable one":              {second(v.in(readable.dir).list()), fuse.OK},
		"list of a private one":               {second(v.in(private.dir).list()), fuse.EACCES},
		"list of the root":                    {second(v.list()), fuse.EACCES},
		"list of the root by root":            {second(root.list()), fuse.OK},
		"create in a private one by root":     {closed(root.in(private.dir).create("f", 0)), fuse.OK},
		"rmdir of another's":                  {v.rmdir("readable"), fuse.EPERM},
		"rename of another's":                 {v.rename("readable", "x"), fuse.EPERM},
		"chmod of another's":                  {v.chmod(public.dir, 0o755), fuse.EPERM},
		"chmod of the root":                   {root.chmod(rootNode, 0o777), fuse.EPERM},
		"rmdir in a sticky one by its owner":  {u.in(sticky.dir).rmdir("theirs"), fuse.OK},
		"chown by a user":                     {u.chown(public.dir, 2), fuse.EPERM},
		"chgrp by a user to a group not his":  {u.chgrp(public.dir, 2), fuse.EPERM},
		"chgrp by a user to his own":          {u.chgrp(public.dir, 1), fuse.OK},
		"chown by root":                       {root.chown(readable.dir, 2), fuse.OK},
		"rename of what root has given to v":  {v.rename("readable", "given"), fuse.OK},
		"access for reading the root":         {v.access(rootNode, 4), fuse.EACCES},
		"access for writing the root":         {v.access(rootNode, 2), fuse.OK},
		"access for searching a private one":  {v.access(private.dir, 1), fuse.EACCES},
		"access for writing the status files": {v.access(statusNode, 2), fuse.EACCES},
	} {
		_ = theirs
		if tt.got != tt.want {
			t.Errorf("%s: %v, want %v", what, tt.got, tt.want)
		}
	}
}

func second[T any](_ T, st fuse.Status) fuse.Status { return st }

// closed closes what has been created.
func closed(f *opened, st fuse.Status) fuse.Status {
	if st.Ok() {
		f.close()
	}
	return st
}

// TestDir_Depth: a rename makes no path that mkdir could not make.
func TestDir_Depth(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	a, b := u.mustMkdir("a", 0o755), u.mustMkdir("b", 0o755)
	for range 12 {
		a = a.mustMkdir(strings.Repeat("a", 199), 0o755)
		b = b.mustMkdir(strings.Repeat("b", 199), 0o755)
	}
	if st := u.move("a", b.dir, "a", 0); st != fuse.Status(syscall.ENAMETOOLONG) {
		t.Errorf("rename to the depths: %v", st)
	}
}

// TestFile_TruncateInherited: who has a descriptor from another user may truncate
// by it, as "sudo -u user program > file" lets program do.
func TestFile_TruncateInherited(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(0).mustCreate("f")
	f.writeAt("x"+line("a"), 0)
	f.user.uid = 1
	if st := f.truncate(0); !st.Ok() {
		t.Errorf("truncate: %v", st)
	}
	if st := f.chmod(f.node, 0o777); st != fuse.EPERM {
		t.Errorf("chmod: %v", st)
	}
	f.writeAt(line("b"), 0)
	f.close()
	r.wantBodies(line("b"))
}

// TestFile_Chown: root gives a file another owner to look at; the name stays with
// the user who made it.
func TestFile_Chown(t *testing.T) {
	r := newRig(t, Options{})
	root := r.as(0)
	f := root.mustCreate(".x")
	if st := root.chown(f.node, 7); !st.Ok() {
		t.Fatal(st)
	}
	if _, attr, st := root.stat(".x"); !st.Ok() || attr.Uid != 7 {
		t.Errorf("root sees owner %d, %v", attr.Uid, st)
	}
	if _, st := r.as(7).lookup(".x"); st != fuse.ENOENT {
		t.Errorf("user 7 sees it: %v", st)
	}
	mine := r.as(7).mustCreate("mine")
	if st := r.as(7).chown(mine.node, 8); st != fuse.EPERM {
		t.Errorf("a user gives his file away: %v", st)
	}
	mine.close()
	f.close()
}
