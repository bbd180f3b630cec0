package fs

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/device"
	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// TestFS_OpensAreSeparate proves F3: the second open of a name neither sees nor
// harms what the first wrote.
func TestFS_OpensAreSeparate(t *testing.T) {
	r := newRig(t, Options{})
	a := r.as(1).mustCreate("f")
	a.writeAt(line("a"), 0)
	node, st := r.as(1).lookup("f")
	if !st.Ok() || node != a.node {
		t.Fatalf("lookup of an open name: node %d, %v", node, st)
	}
	b, st := r.as(1).openNode(node, syscall.O_WRONLY|syscall.O_APPEND)
	if !st.Ok() {
		t.Fatal(st)
	}
	b.writeAt(line("b"), 4711) // the kernel's idea of the end is that of a
	if st := b.truncate(uint64(len(line("b")))); !st.Ok() {
		t.Fatal(st)
	}
	b.close()
	a.writeAt(line("a2"), uint64(len(line("a"))))
	a.close()
	if got, want := r.bodies(), line("b")+line("a")+line("a2"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
}

// TestFS_OrderIsThatOfTheFlushes: FLUSH is the ticket (G6).
func TestFS_OrderIsThatOfTheFlushes(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.as(1).mustCreate("a"), r.as(1).mustCreate("b")
	b.writeAt(line("b"), 0)
	a.writeAt(line("a"), 0)
	a.flush()
	b.flush()
	b.release()
	a.release()
	if got, want := r.bodies(), line("a")+line("b"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
}

// TestFS_FlushStages proves F1 as far as it goes without a crash, and F2: the
// bytes of a FLUSH are in the store, and nothing is published before the
// RELEASE.
func TestFS_FlushStages(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate("f")
	f.flush() // the empty one of the shell
	if s := r.stats(); s != (queue.Stats{}) {
		t.Errorf("after an empty flush: %+v", s)
	}
	f.writeAt(line("1"), 0)
	f.flush()
	if s := r.stats(); s.Staged != 1 || s.Ready != 0 {
		t.Errorf("after the first flush: %+v", s)
	}
	f.writeAt(line("2")+"{", uint64(len(line("1"))))
	f.flush()
	if s := r.stats(); s.Staged != 3 || s.Ready != 0 || s.Dead != 0 {
		t.Errorf("after the second flush: %+v", s)
	}
	f.writeAt(line("3")[1:], uint64(len(line("1")+line("2")))+1)
	f.close()
	if s := r.stats(); s.Staged != 0 || s.Ready != 3 || s.Dead != 0 {
		t.Errorf("after the release: %+v", s)
	}
	if got, want := r.bodies(), line("1")+line("2")+line("3"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
	want := Stats{IngestedFilesTotal: 1, IngestedMessagesTotal: 3}
	if got := r.fs.Stats(); got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
}

// TestFS_FlushCostsWhatIsNew: what was staged is neither decoded nor written
// again, so that many children with one descriptor cost in proportion.
func TestFS_FlushCostsWhatIsNew(t *testing.T) {
	r := newRig(t, Options{})
	count := &counting{Format: r.fs.root.route.format()}
	setFormat(r.fs, count)
	f := r.as(1).mustCreate("f")
	var want uint64
	for i := range 100 {
		text := line(fmt.Sprint(i))
		f.writeAt(text, want)
		want += uint64(len(text))
		f.flush()
		f.flush()
	}
	f.release()
	if count.bytes != want {
		t.Errorf("decoded %d bytes of %d", count.bytes, want)
	}
}

type counting struct {
	ingest.Format
	bytes uint64
}

func (c *counting) Decode(data []byte, at ingest.Position) ingest.Result {
	c.bytes += uint64(len(data))
	return c.Format.Decode(data, at)
}

// TestFS_RewriteBeforeRelease: only the open file description itself may
// replace what it staged.
func TestFS_RewriteBeforeRelease(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate("f")
	f.writeAt(line("1")+line("2"), 0)
	f.flush()
	f.writeAt(line("x"), 0)
	f.flush()
	f.truncate(uint64(len(line("x"))))
	f.close()
	if got, want := r.bodies(), line("x"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
	if s := r.stats(); s.Staged != 0 || s.Dead != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// TestFS_LargeFile: a file of many pieces, with a line longer than a piece.
func TestFS_LargeFile(t *testing.T) {
	r := newRig(t, Options{})
	long := strings.TrimSuffix(line("long"), "}\n") + `, "x": "` + strings.Repeat("y", 3*pieceSize) + "\"}\n"
	text := long
	for len(text) < 6*pieceSize {
		text += long[:len(long)/8] + "\n" + strings.Repeat(line("short"), 1000)
	}
	f := r.as(1).mustCreate("f")
	for at := 0; at < len(text); at += device.MaxWrite {
		if st := f.writeAt(text[at:min(at+device.MaxWrite, len(text))], uint64(at)); !st.Ok() {
			t.Fatal(st)
		}
	}
	f.close()
	lines, torn := strings.Count(text, "\n"), strings.Count(text, "y\n")
	if s := r.stats(); s.Ready != uint64(lines-torn) || s.Dead != uint64(torn) || torn == 0 {
		t.Errorf("%d lines, %d of them torn, gave %+v", lines, torn, s)
	}
	if got := r.fs.Stats().BufferedBytes; got != 0 {
		t.Errorf("%d bytes are still buffered", got)
	}
}

// TestFS_BadLines proves G4 for lines: a bad one is set aside with its reason.
func TestFS_BadLines(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(7).mustCreate("f")
	f.writeAt(line("1")+"garbage\n"+line("2")+`{"torn`, 0)
	f.close()
	if got, want := r.bodies(), line("1")+line("2"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
	var got []string
	for m, err := range r.route.Dead() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %s %s %d %q", m.Line, m.Reason, m.File, m.UID, m.Body))
	}
	want := `2 not-json f 7 "garbage\n"`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("dead letters\n%s\nwant\n%s", s, want)
	}
	if got, want := r.partials(), []string{`f 7 torn-last-line "{\"torn"`}; !slices.Equal(got, want) {
		t.Errorf("partial files %q, want %q", got, want)
	}
}

// TestFS_NamesArePrivate proves F5.
func TestFS_NamesArePrivate(t *testing.T) {
	r := newRig(t, Options{})
	mine := r.as(1).mustCreate("f")
	mine.writeAt(line("mine"), 0)
	for _, uid := range []uint32{2, 0} {
		if _, st := r.as(uid).lookup("f"); st != fuse.ENOENT {
			t.Errorf("user %d looks it up: %v", uid, st)
		}
		if st := r.as(uid).unlink("f"); st != fuse.ENOENT {
			t.Errorf("user %d unlinks it: %v", uid, st)
		}
		f, st := r.as(uid).create("f", syscall.O_EXCL)
		if !st.Ok() {
			t.Errorf("user %d creates it: %v", uid, st)
		}
		f.close()
	}
	// A user who got hold of the node reads nothing and harms nothing.
	theirs, st := r.as(2).openNode(mine.node, syscall.O_RDWR)
	if !st.Ok() || theirs.read(100) != "" {
		t.Errorf("user 2 opens the node: %v", st)
	}
	theirs.writeAt(line("theirs"), 0)
	theirs.close()
	cut := func(in *fuse.SetAttrIn) { in.Valid = fuse.FATTR_SIZE }
	if st := r.as(2).setAttr(mine.node, cut); st != fuse.EPERM {
		t.Errorf("user 2 truncates the node: %v", st)
	}
	mine.close()
	if got, want := r.bodies(), line("theirs")+line("mine"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
}

// TestFS_ClosedNamesAreGone: once a file is flushed its name is free for other
// processes, though its RELEASE is late; and nothing stays in the tables.
func TestFS_ClosedNamesAreGone(t *testing.T) {
	r := newRig(t, Options{})
	u, other := r.as(1), r.as(1).process(2)
	a := u.mustCreate("f")
	if _, st := other.open("f", syscall.O_CREAT|syscall.O_EXCL|syscall.O_WRONLY); st != fuse.Status(syscall.EEXIST) {
		t.Errorf("second exclusive create of an open name: %v", st)
	}
	a.writeAt(line("a"), 0)
	a.flush()
	if _, st := other.lookup("f"); st != fuse.ENOENT {
		t.Errorf("lookup of a flushed name: %v", st)
	}
	b, st := other.open("f", syscall.O_CREAT|syscall.O_EXCL|syscall.O_WRONLY)
	if !st.Ok() {
		t.Fatal(st)
	}
	a.release()
	if node, st := other.lookup("f"); !st.Ok() || node != b.node {
		t.Errorf("lookup after the older file's release: node %d, %v", node, st)
	}
	b.close()
	if _, st := u.process(3).lookup("f"); st != fuse.ENOENT {
		t.Errorf("lookup of a released name: %v", st)
	}
	r.pass(graceTime)
	if len(r.fs.nodes)+len(r.fs.root.nodes)+len(r.fs.handles)+len(r.fs.expiries) != 0 {
		t.Errorf("left in the tables: %d nodes, %d names, %d handles, %d expiries",
			len(r.fs.nodes), len(r.fs.root.nodes), len(r.fs.handles), len(r.fs.expiries))
	}
}

// TestFS_OpenAfterRelease: an OPEN that lost the race with the last RELEASE
// gets a fresh file and not ESTALE.
func TestFS_OpenAfterRelease(t *testing.T) {
	r := newRig(t, Options{})
	a := r.as(1).mustCreate("f")
	a.close()
	b, st := r.as(1).openNode(a.node, syscall.O_WRONLY)
	if !st.Ok() {
		t.Fatal(st)
	}
	// Python's open calls fstat, and the kernel knows the node by its old number.
	in := fuse.GetAttrIn{InHeader: r.as(1).header(a.node), Flags_: fuse.FUSE_GETATTR_FH, Fh_: b.fh}
	if st := r.fs.GetAttr(nil, &in, new(fuse.AttrOut)); !st.Ok() {
		t.Errorf("fstat: %v", st)
	}
	if st := b.truncate(0); !st.Ok() {
		t.Errorf("ftruncate: %v", st)
	}
	b.writeAt(line("b"), 0)
	b.close()
	if got, want := r.bodies(), line("b"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
}

// TestFS_TruncateByPath: truncate(2) cuts what its process alone has open and
// nobody was promised, and nothing else (G1).
func TestFS_TruncateByPath(t *testing.T) {
	r := newRig(t, Options{})
	cut := func(f *opened) {
		in := fuse.SetAttrIn{}
		in.InHeader, in.Valid = r.as(1).header(f.node), fuse.FATTR_SIZE
		if st := r.fs.SetAttr(nil, &in, new(fuse.AttrOut)); !st.Ok() {
			t.Errorf("truncate: %v", st)
		}
	}
	fresh := r.as(1).mustCreate("fresh")
	fresh.writeAt(line("cut"), 0)
	cut(fresh)
	fresh.close()
	promised := r.as(1).mustCreate("promised")
	promised.writeAt(line("promised"), 0)
	promised.flush()
	cut(promised)
	promised.close()
	shared := r.as(1).mustCreate("shared")
	other, st := r.as(1).openNode(shared.node, syscall.O_WRONLY)
	if !st.Ok() {
		t.Fatal(st)
	}
	shared.writeAt(line("shared"), 0)
	other.writeAt(line("other"), 0)
	cut(shared)
	shared.close()
	other.close()
	if got, want := r.bodies(), line("promised")+line("shared")+line("other"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
}

// TestFS_FlushIsAllOrNothing: a FLUSH of many pieces that fails leaves what was
// promised before (G1, G2).
func TestFS_FlushIsAllOrNothing(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate("f")
	f.writeAt(line("promised"), 0)
	f.flush()
	pieces := 0
	real := r.fs.root.route.format()
	setFormat(r.fs, formatFunc(func(data []byte, at ingest.Position) ingest.Result {
		if pieces++; pieces == 3 {
			panic("the daemon dies here")
		}
		return real.Decode(data, at)
	}))
	f.writeAt(strings.Repeat(line("new"), 4*pieceSize/len(line("new"))), 0)
	func() {
		defer func() { _ = recover() }()
		f.flush()
	}()
	if pieces != 3 {
		t.Fatalf("decoded %d pieces", pieces)
	}
	r.fs.handle(f.fh).file.stage.Commit()
	if got, want := r.bodies(), line("promised"); got != want {
		t.Errorf("published\n%.200s\nwant\n%s", got, want)
	}
}

// formatFunc is a Format whose faults are written by a test.
type formatFunc func([]byte, ingest.Position) ingest.Result

func (formatFunc) Whole() bool { return false }

func (f formatFunc) Decode(data []byte, at ingest.Position) ingest.Result { return f(data, at) }

// TestFS_Unlink: what close or fsync has promised stays (G1); the rest goes.
func TestFS_Unlink(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate("f")
	f.writeAt(line("promised"), 0)
	f.flush()
	f.writeAt(line("not promised"), uint64(len(line("promised"))))
	if st := r.as(1).unlink("f"); !st.Ok() {
		t.Fatal(st)
	}
	f.close()
	if got, want := r.bodies(), line("promised"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
}

// TestFS_RenameOver: what had the new name goes on without one.
func TestFS_RenameOver(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.as(1).mustCreate("a"), r.as(1).mustCreate("b")
	a.writeAt(line("a"), 0)
	b.writeAt(line("b"), 0)
	in := fuse.RenameIn{InHeader: r.as(1).header(rootNode), Newdir: rootNode}
	if st := r.fs.Rename(nil, &in, "a", "b"); !st.Ok() {
		t.Fatal(st)
	}
	if node, st := r.as(1).lookup("b"); !st.Ok() || node != a.node {
		t.Errorf("b is node %d, %v, want a's", node, st)
	}
	b.close()
	if node, st := r.as(1).lookup("b"); !st.Ok() || node != a.node {
		t.Errorf("after the old file's release b is node %d, %v, want a's", node, st)
	}
	a.close()
	if got, want := r.bodies(), line("b")+line("a"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
}

// TestFS_Refusals: what is refused has the errno that programs expect.
func TestFS_Refusals(t *testing.T) {
	r := newRig(t, Options{FileLimit: 100, BufferLimit: 150, UserShare: 1})
	for name, want := range map[string]syscall.Errno{
		strings.Repeat("x", 256): syscall.ENAMETOOLONG,
	} {
		if _, st := r.as(1).create(name, 0); st != fuse.Status(want) {
			t.Errorf("create %.10q: %v, want %v", name, st, want)
		}
	}
	f, g := r.as(1).mustCreate(strings.Repeat("x", 255)), r.as(1).mustCreate("g")
	if st := f.writeAt("x", 100); st != fuse.Status(syscall.EFBIG) {
		t.Errorf("write behind the limit: %v", st)
	}
	if st := f.writeAt(strings.Repeat("x", 100), 0); !st.Ok() {
		t.Errorf("write up to the limit: %v", st)
	}
	if st := g.writeAt(strings.Repeat("x", 60), 0); st != fuse.Status(syscall.ENOSPC) {
		t.Errorf("write over the buffers: %v", st)
	}
	f.close()
	if st := g.writeAt(strings.Repeat("x", 60), 0); !st.Ok() {
		t.Errorf("write after room was made: %v", st)
	}
	g.close()
	in := fuse.OpenIn{InHeader: r.as(1).header(rootNode)}
	if st := r.fs.OpenDir(nil, &in, new(fuse.OpenOut)); st != fuse.EACCES {
		t.Errorf("a user lists the mount: %v", st)
	}
}

// TestFS_Drain: no new files, and those that are open are waited for.
func TestFS_Drain(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate("f")
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := r.fs.Drain(short); err == nil {
		t.Error("Drain with an open file returned nil")
	}
	if _, st := r.as(1).create("g", 0); st != fuse.EROFS {
		t.Errorf("create while draining: %v", st)
	}
	f.writeAt(line("f"), 0)
	done := make(chan error)
	go func() { done <- r.fs.Drain(t.Context()) }()
	f.close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, want := r.bodies(), line("f"); got != want {
		t.Errorf("published\n%swant\n%s", got, want)
	}
}

// TestFS_StatusSnapshot: a status file has its true size and does not change
// while it is open.
func TestFS_StatusSnapshot(t *testing.T) {
	n := 0
	r := newRig(t, Options{Status: []StatusFile{{Name: "n", Content: func() []byte {
		n++
		return bytes.Repeat([]byte("x"), n)
	}}}})
	look := func() (node, ino, size uint64) {
		in := r.as(1).header(statusNode)
		var out fuse.EntryOut
		if st := r.fs.Lookup(nil, &in, "n", &out); !st.Ok() {
			t.Fatal(st)
		}
		return out.NodeId, out.Attr.Ino, out.Attr.Size
	}
	first, ino, size := look()
	f, st := r.as(1).openNode(first, syscall.O_RDONLY)
	if !st.Ok() {
		t.Fatal(st)
	}
	second, ino2, size2 := look()
	if first == second || ino != ino2 || size != 1 || size2 != 2 {
		t.Errorf("nodes %d and %d, inodes %d and %d, sizes %d and %d", first, second, ino, ino2, size, size2)
	}
	if got := f.read(10); got != "x" {
		t.Errorf("the open file reads %q", got)
	}
	if _, st := r.as(0).openNode(first, syscall.O_WRONLY); st != fuse.EACCES {
		t.Errorf("open for writing: %v", st)
	}
	f.release()
	r.fs.Forget(first, 1)
	r.fs.Forget(second, 1)
	if len(r.fs.tree.snapshots) != 0 {
		t.Errorf("%d snapshots are kept", len(r.fs.tree.snapshots))
	}
}

// TestFS_PanicIsEIO: a bug costs one request.
func TestFS_PanicIsEIO(t *testing.T) {
	r := newRig(t, Options{})
	if st := r.fs.recovered("bug"); st != fuse.EIO || r.fs.Stats().PanicsTotal != 1 {
		t.Errorf("a panic gave %v and %+v", st, r.fs.Stats())
	}
}
