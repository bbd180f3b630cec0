package fs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/device"
	"spoolfs/queue"
)

// TestHeld_IsARealFile proves F8: later opens of a held name append to the same
// content, read it, truncate it and write into it.
func TestHeld_IsARealFile(t *testing.T) {
	r := newRig(t, Options{})
	u, other := r.as(1), r.as(1).process(2)
	for _, name := range []string{".x", "x.tmp", "x.part", "x.inflight"} {
		u.put(name, line("a"))
		f := other.mustOpen(name, syscall.O_WRONLY|syscall.O_APPEND)
		f.writeAt(line("b"), 0)
		reader := u.mustOpen(name, syscall.O_RDONLY)
		if got, want := reader.read(1000), line("a")+line("b"); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
		f.close()
		if got, want := reader.read(1000), line("a")+line("b"); got != want {
			t.Errorf("%s holds %q for a reader after the close, want %q", name, got, want)
		}
		reader.close()
		if _, attr, st := other.stat(name); !st.Ok() || attr.Size != uint64(2*len(line("a"))) {
			t.Errorf("stat of %s: %d bytes, %v", name, attr.Size, st)
		}
		f = u.mustOpen(name, syscall.O_RDWR)
		f.writeAt(strings.ToUpper("http"), uint64(strings.Index(line("a"), "http")))
		f.truncate(uint64(len(line("a"))))
		f.close()
		if got := r.stats(); got.Ready != 0 || got.Staged != 1 {
			t.Errorf("%s: the queue is %+v", name, got)
		}
		if st := u.rename(name, "ordinary"); !st.Ok() {
			t.Errorf("rename %s: %v", name, st)
		}
		r.wantBodies(strings.Replace(line("a"), "http", "HTTP", 1))
	}
	if got := r.fs.usage.held(); got != (holding{}) {
		t.Errorf("still in use: %+v", got)
	}
}

// TestHeld_TruncatingOpen: an open with O_TRUNC empties it for all.
func TestHeld_TruncatingOpen(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put(".x", line("a"))
	u.put(".x", line("b"))
	u.rename(".x", "x")
	r.wantBodies(line("b"))
}

// TestHeld_CloseIsDurable proves F8: what was closed or fsync'ed is there after a
// restart, under its name, and what it costs is what is new.
func TestHeld_CloseIsDurable(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	var want string
	for i := range 5 {
		f := u.mustOpen("f.tmp", syscall.O_CREAT|syscall.O_WRONLY|syscall.O_APPEND)
		f.writeAt(line(fmt.Sprint(i)), 0)
		want += line(fmt.Sprint(i))
		f.fsync()
		if i == 2 {
			f.writeAt("lost", 0) // by a crash: nobody was promised it
		} else {
			f.close()
		}
		if i >= 2 {
			r.restart()
			u = r.as(1)
		}
		if held := r.fs.usage.held(); i != 2 && held.bytes != 0 {
			t.Errorf("%d bytes are in memory with no file open", held.bytes)
		}
	}
	if s := r.stats(); s.Staged != 5 {
		t.Errorf("%d entries are staged for 5 appends", s.Staged)
	}
	if got := u.mustOpen("f.tmp", syscall.O_RDONLY).read(10000); got != want {
		t.Errorf("after restarts it holds\n%s\nwant\n%s", got, want)
	}
	if _, st := r.as(2).lookup("f.tmp"); st != fuse.ENOENT {
		t.Errorf("another user finds it: %v", st)
	}
	if st := u.rename("f.tmp", "f"); !st.Ok() {
		t.Fatal(st)
	}
	r.wantBodies(want)
}

// TestHeld_EmptySurvives: a name that was only touched is there after a restart.
func TestHeld_EmptySurvives(t *testing.T) {
	r := newRig(t, Options{})
	r.as(1).put(".x", "")
	r.restart()
	if _, attr, st := r.as(1).stat(".x"); !st.Ok() || attr.Size != 0 {
		t.Errorf("after a restart: %d bytes, %v", attr.Size, st)
	}
	r.as(1).rename(".x", "x")
	r.wantBodies("")
	if s := r.stats(); s != (queue.Stats{}) {
		t.Errorf("left behind: %+v", s)
	}
}

// TestHeld_RenamedWhileOpen: it is an ordinary file from then on, and is committed
// at its last RELEASE. The new name gives others files of their own.
func TestHeld_RenamedWhileOpen(t *testing.T) {
	r := newRig(t, Options{})
	u, other := r.as(1), r.as(1).process(2)
	a := u.mustCreate(".x")
	b := other.mustOpen(".x", syscall.O_WRONLY|syscall.O_APPEND)
	a.writeAt(line("a"), 0)
	if st := u.rename(".x", "x"); !st.Ok() {
		t.Fatal(st)
	}
	if s := r.stats(); s.Ready != 0 || s.Staged != 1 {
		t.Errorf("after the rename the queue is %+v", s)
	}
	own := other.mustOpen("x", syscall.O_WRONLY|syscall.O_APPEND)
	own.writeAt(line("own"), 0)
	own.close()
	b.writeAt(line("b"), 0)
	b.close()
	r.wantBodies(line("own"))
	a.close()
	r.wantBodies(line("a") + line("b"))
	if st := u.unlink(".x"); st != fuse.ENOENT {
		t.Errorf("the old name: %v", st)
	}
}

// TestHeld_OpenedBeforeRename: a file that is opened again while its last RELEASE is
// under way, and renamed then, is not committed before what has opened it is done.
func TestHeld_OpenedBeforeRename(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put(".log", line("a"))
	f := u.mustOpen(".log", syscall.O_WRONLY|syscall.O_APPEND)
	if st := u.process(2).rename(".log", "log"); !st.Ok() {
		t.Fatal(st)
	}
	r.fs.finish(r.fs.handle(f.fh).file) // the rest of the first RELEASE
	f.writeAt(line("b"), 0)
	f.close()
	r.wantBodies(line("a") + line("b"))
}

// TestHeld_PublishedMeanwhile: a rename of its directory finds a file that is not
// held any more, and leaves it alone.
func TestHeld_PublishedMeanwhile(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put(".f", line("a"))
	f := u.mustOpen(".f", syscall.O_WRONLY|syscall.O_APPEND)
	if st := u.rename(".f", "f"); !st.Ok() {
		t.Fatal(st)
	}
	if err := r.fs.relabel(r.fs.handle(f.fh).file, "d/.f"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("relabel: %v", err)
	}
	r.restart()
	r.wantBodies(line("a"))
}

// TestHeld_RenameRefusesWhatIsNoMessage: its writer is told, and still has it. A
// file that holds messages too is published, and the rest set aside.
func TestHeld_RenameRefusesWhatIsNoMessage(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put(".x", "garbage\n")
	if st := u.rename(".x", "x"); st != fuse.Status(syscall.EBADMSG) {
		t.Errorf("rename of garbage: %v", st)
	}
	f := u.mustOpen(".x", syscall.O_WRONLY|syscall.O_APPEND)
	f.writeAt(line("a")+"torn", 0)
	f.close()
	if st := u.rename(".x", "x"); !st.Ok() {
		t.Errorf("rename of a file with one message: %v", st)
	}
	r.wantBodies(line("a"))
	if s := r.stats(); s.Dead != 1 || s.Partial != 1 || s.Staged != 0 {
		t.Errorf("the queue is %+v", s)
	}
}

// TestHeld_Unlink: it goes entirely, also what was promised; who has it open
// keeps it to himself.
func TestHeld_Unlink(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put(".x", line("a"))
	open := u.process(2).mustOpen(".x", syscall.O_RDWR)
	if st := u.unlink(".x"); !st.Ok() {
		t.Fatal(st)
	}
	if got := open.read(1000); got != line("a") {
		t.Errorf("the open file holds %q", got)
	}
	open.writeAt(line("b"), 0)
	open.close()
	r.restart()
	r.wantBodies("")
	if s := r.stats(); s != (queue.Stats{}) {
		t.Errorf("left behind: %+v", s)
	}
	if got := r.fs.usage.held(); got != (holding{}) {
		t.Errorf("still in use: %+v", got)
	}
}

// TestHeld_Renames: to another held name; over a held name, which goes; over an
// ordinary one, which is published all the same; and with RENAME_NOREPLACE.
func TestHeld_Renames(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put(".a", line("a"))
	u.put(".b", line("b"))
	if st := u.move(".a", rootNode, ".b", 1); st != fuse.Status(syscall.EEXIST) {
		t.Errorf("rename without replacing: %v", st)
	}
	if st := u.rename(".a", ".b"); !st.Ok() {
		t.Fatal(st)
	}
	if st := u.rename(".b", ".c"); !st.Ok() {
		t.Fatal(st)
	}
	r.restart()
	u = r.as(1)
	if names, _ := r.as(0).process(1).list(); !slices.Equal(names, []string{".status"}) {
		t.Errorf("root lists %q", names)
	}
	for name, want := range map[string]fuse.Status{".a": fuse.ENOENT, ".b": fuse.ENOENT, ".c": fuse.OK} {
		if _, st := u.lookup(name); st != want {
			t.Errorf("%s: %v, want %v", name, st, want)
		}
	}
	over := u.mustCreate("x")
	over.writeAt(line("over"), 0)
	if st := u.rename(".c", "x"); !st.Ok() {
		t.Fatal(st)
	}
	over.close()
	r.wantBodies(line("a") + line("over"))
}

// TestHeld_Lines: a held file may have a number of lines, and those that were cut
// off or written over are not counted.
func TestHeld_Lines(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate(".lines")
	all := strings.Repeat("\n", maxLines)
	if st := f.writeAt(all, 0); !st.Ok() {
		t.Fatal(st)
	}
	if st := f.writeAt("\n", maxLines); st != fuse.Status(syscall.EFBIG) {
		t.Errorf("write of too many lines: %v", st)
	}
	if st := f.writeAt(strings.Repeat("x", 10), 0); !st.Ok() {
		t.Error(st)
	}
	if st := f.writeAt(strings.Repeat("\n", 10), maxLines); !st.Ok() {
		t.Errorf("write of as many lines as were written over: %v", st)
	}
	f.close()
	f = r.as(1).mustOpen(".lines", syscall.O_WRONLY|syscall.O_TRUNC)
	if st := f.writeAt(all, 0); !st.Ok() {
		t.Errorf("write of the lines anew: %v", st)
	}
	f.close()
}

// TestHeld_Abandoned: what waits for too long is set aside, in one piece and with
// its reason; what is open or has changed is not.
func TestHeld_Abandoned(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(7)
	u.put(".old", line("old")+"x")
	u.put(".young", line("young"))
	u.mustCreate(".open")
	r.pass(20 * time.Hour)
	f := u.mustOpen(".young", syscall.O_WRONLY|syscall.O_APPEND)
	f.writeAt(line("more"), 0)
	f.close()
	r.restart() // which begins no new day
	u = r.as(7)
	open := u.mustOpen(".open", syscall.O_CREAT|syscall.O_WRONLY)
	r.pass(5 * time.Hour)
	if got, want := r.partials(), []string{fmt.Sprintf(".old 7 abandoned %q", line("old")+"x")}; !slices.Equal(got, want) {
		t.Errorf("partial files %q, want %q", got, want)
	}
	if _, st := u.lookup(".old"); st != fuse.ENOENT {
		t.Errorf("the abandoned name: %v", st)
	}
	open.close()
	r.pass(30 * time.Hour)
	if s := r.stats(); s.Partial != 2 || s.Staged != 0 {
		t.Errorf("two days later the queue is %+v", s)
	}
	if got := r.fs.Stats(); got.HeldFiles != 0 || got.IngestedPartialTotal != 2 {
		t.Errorf("stats are %+v", got)
	}
}

// TestHeld_LetsGo: of what nobody has open nothing stays in memory, after a rename
// that is refused and a truncate(2) neither.
func TestHeld_LetsGo(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put(".f", strings.Repeat("x", 10_000))
	if st := u.rename(".f", "f"); st != fuse.Status(syscall.EBADMSG) {
		t.Errorf("rename: %v", st)
	}
	if got := r.fs.usage.held().bytes; got != 0 {
		t.Errorf("%d bytes are kept after the rename", got)
	}
	node, _ := u.lookup(".f")
	st := u.setAttr(node, func(in *fuse.SetAttrIn) { in.Valid, in.Size = fuse.FATTR_SIZE, 5_000 })
	if got := r.fs.usage.held().bytes; !st.Ok() || got != 0 {
		t.Errorf("truncate: %v, %d bytes are kept", st, got)
	}
}

// TestHeld_Large: a file of many pieces is changed in the midst, and read back.
func TestHeld_Large(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	text := []byte(strings.Repeat(line("0123456789"), 3*pieceSize/len(line("0123456789"))))
	f := u.mustCreate(".x")
	for at := 0; at < len(text); at += device.MaxWrite {
		f.writeAt(string(text[at:min(at+device.MaxWrite, len(text))]), uint64(at))
	}
	f.close()
	at := pieceSize + 12345
	f = u.mustOpen(".x", syscall.O_RDWR)
	copy(text[at:], "XYZ")
	f.writeAt("XYZ", uint64(at))
	f.close()
	r.restart()
	f = r.as(1).mustOpen(".x", syscall.O_RDONLY)
	for at := 0; at < len(text); at += device.MaxWrite {
		got, st := f.readAt(device.MaxWrite, uint64(at))
		if want := string(text[at:min(at+device.MaxWrite, len(text))]); !st.Ok() || got != want {
			t.Fatalf("at %d: read %d bytes, %v, that are not what was written", at, len(got), st)
		}
	}
	f.close()
	if got := r.fs.usage.held(); got.bytes != 0 {
		t.Errorf("%d bytes are still in memory", got.bytes)
	}
}

// TestHeld_TruncateByPath: truncate(2) is as durable as a close, as none follows.
func TestHeld_TruncateByPath(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put(".x", line("a")+line("b"))
	node, _ := u.lookup(".x")
	st := u.setAttr(node, func(in *fuse.SetAttrIn) { in.Valid, in.Size = fuse.FATTR_SIZE, uint64(len(line("a"))) })
	if !st.Ok() {
		t.Fatal(st)
	}
	r.restart()
	r.as(1).rename(".x", "x")
	r.wantBodies(line("a"))
}
