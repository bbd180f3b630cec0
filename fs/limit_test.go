package fs

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// TestUsage_UserShare proves F12: what one user may have open, hold or have in
// memory leaves room for the others; root may have all.
func TestUsage_UserShare(t *testing.T) {
	r := newRig(t, Options{OpenLimit: 8, BufferLimit: 1000, UserShare: 0.5})
	u, v, root := r.as(1), r.as(2), r.as(0)
	var files []*opened
	for i := range 3 {
		files = append(files, u.mustCreate(fmt.Sprint(i)))
	}
	u.mustMkdir("d", 0o755)
	quota := fuse.Status(syscall.EDQUOT)
	for what, st := range map[string]fuse.Status{
		"create": second(u.create("one more", 0)),
		"open":   second(u.openNode(files[0].node, syscall.O_RDONLY)),
		"mkdir":  second(u.mkdir("one more", 0o755)),
	} {
		if st != quota {
			t.Errorf("%s over the share: %v", what, st)
		}
	}
	if st := files[0].writeAt(strings.Repeat("x", 501), 0); st != quota {
		t.Errorf("write over the share: %v", st)
	}
	other := v.mustCreate("f")
	if st := other.writeAt(strings.Repeat("x", 400), 0); !st.Ok() {
		t.Errorf("write by another user: %v", st)
	}
	for i := range 3 {
		files = append(files, root.mustCreate(fmt.Sprint(i)))
	}
	if _, st := root.create("one more", 0); st != fuse.Status(syscall.ENFILE) {
		t.Errorf("create over the limit of all: %v", st)
	}
	if st := files[3].writeAt(strings.Repeat("x", 601), 0); st != fuse.Status(syscall.ENOSPC) {
		t.Errorf("write over the limit of all: %v", st)
	}
	for _, f := range append(files, other) {
		f.close()
	}
	u.rmdir("d")
	if got := r.fs.usage.held(); got != (holding{}) {
		t.Errorf("still in use: %+v", got)
	}
}

// TestUsage_HeldFilesCount: a file that waits for its rename counts, also after a
// restart, until it is published.
func TestUsage_HeldFilesCount(t *testing.T) {
	r := newRig(t, Options{OpenLimit: 4, UserShare: 0.5})
	u := r.as(1)
	u.put(".a", line("a"))
	if _, st := u.create(".b", 0); st != fuse.Status(syscall.EDQUOT) {
		t.Errorf("a second held file: %v", st)
	}
	r.restart()
	u = r.as(1)
	if _, st := u.create(".b", 0); st != fuse.Status(syscall.EDQUOT) {
		t.Errorf("a second held file after a restart: %v", st)
	}
	u.rename(".a", "a")
	u.put(".b", line("b"))
}

// TestUsage_Listings proves F12: what an open directory shows is in memory, and so
// it counts.
func TestUsage_Listings(t *testing.T) {
	r := newRig(t, Options{OpenLimit: 100, BufferLimit: 1000})
	u := r.as(1).mustMkdir("d", 0o755)
	u.put(".f"+strings.Repeat("x", 200), "")
	u.put(".g", "")
	before := r.fs.usage.held()
	open := func() (uint64, fuse.Status) {
		in := fuse.OpenIn{InHeader: u.header(u.dir)}
		var out fuse.OpenOut
		st := u.fs.OpenDir(nil, &in, &out)
		return out.Fh, st
	}
	fh, st := open()
	if !st.Ok() {
		t.Fatal(st)
	}
	if _, st := open(); st != fuse.Status(syscall.EDQUOT) {
		t.Errorf("second listing: %v", st)
	}
	u.fs.ReleaseDir(&fuse.ReleaseIn{InHeader: u.header(u.dir), Fh: fh})
	if got := r.fs.usage.held(); got != before || len(r.fs.listings) != 0 {
		t.Errorf("%+v is held and %d listings, want %+v", got, len(r.fs.listings), before)
	}
}

// TestUsage_RefusedOpen: an OPEN that is refused leaves no node, though it would
// have got one of its own.
func TestUsage_RefusedOpen(t *testing.T) {
	r := newRig(t, Options{OpenLimit: 2})
	f := r.as(1).mustCreate("f")
	r.as(2).mustCreate("f")
	for range 3 {
		// By /proc/self/fd of a descriptor that another user handed over.
		if _, st := r.as(2).openNode(f.node, syscall.O_WRONLY); st != fuse.Status(syscall.ENFILE) {
			t.Errorf("open: %v", st)
		}
	}
	if len(r.fs.nodes) != 2 {
		t.Errorf("there are %d nodes", len(r.fs.nodes))
	}
}

// TestInstalment_Linger proves F7: a file that stays open is committed in whole
// lines once it has been quiet for the linger time.
func TestInstalment_Linger(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate("log")
	text := line("a") + line("b")
	f.writeAt(text+`{"half`, 0)
	r.pass(4 * time.Second)
	r.wantBodies("")
	r.pass(time.Second)
	r.wantBodies(text)
	if s := r.stats(); s.Staged != 1 {
		t.Errorf("of the last line %d entries are staged", s.Staged)
	}
	end := uint64(len(text))
	if st := f.writeAt("x", end-1); st != fuse.EINVAL {
		t.Errorf("write below what is committed: %v", st)
	}
	if st := f.truncate(end - 1); st != fuse.EINVAL {
		t.Errorf("truncate below what is committed: %v", st)
	}
	if _, st := f.readAt(1, 0); st != fuse.EINVAL {
		t.Errorf("read below what is committed: %v", st)
	}
	if got, st := f.readAt(100, end); got != `{"half` {
		t.Errorf("the rest is %q, %v", got, st)
	}
	f.writeAt(line("c"), end) // over the half line
	f.flush()
	r.pass(4 * time.Second)
	f.fsync()
	r.pass(4 * time.Second)
	r.wantBodies("")
	r.pass(time.Second)
	r.wantBodies(line("c"))
	f.writeAt(line("d"), end+uint64(len(line("c"))))
	f.close()
	r.wantBodies(line("d"))
	want := Stats{IngestedFilesTotal: 1, IngestedMessagesTotal: 4}
	if got := r.fs.Stats(); got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
}

// TestInstalment_LineNumbersGoOn: ids of the messages of a file stay different.
func TestInstalment_LineNumbersGoOn(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate("log")
	f.writeAt(line("a"), 0)
	r.pass(5 * time.Second)
	f.writeAt(line("b")+"garbage\n", uint64(len(line("a"))))
	f.close()
	ids := map[queue.ID]uint32{}
	for m, err := range r.route.Pending() {
		if err != nil {
			t.Fatal(err)
		}
		ids[m.ID] = m.Line
	}
	for m, err := range r.route.Dead() {
		if err != nil || m.Line != 3 {
			t.Errorf("the dead letter is of line %d, %v", m.Line, err)
		}
	}
	if len(ids) != 2 {
		t.Errorf("ids and lines are %v", ids)
	}
}

// TestInstalment_NeverQuiet: a file that is flushed all the time is committed too.
func TestInstalment_NeverQuiet(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate("log")
	for i := range uint64(maxQuiet*5 + 1) {
		f.writeAt(line("a"), i*uint64(len(line("a"))))
		f.fsync()
		r.pass(time.Second)
	}
	if s := r.stats(); s.Ready < maxQuiet*5 {
		t.Errorf("after a minute the queue is %+v", s)
	}
	f.close()
}

// TestInstalment_BySize: the limits count what is not committed, so a file of any
// size passes; a line that is too long does not.
func TestInstalment_BySize(t *testing.T) {
	r := newRig(t, Options{FileLimit: 10_000})
	f := r.as(1).mustCreate("big")
	text := strings.Repeat(line("a"), 20)
	var want strings.Builder
	for range 50 {
		if st := f.writeAt(text, uint64(want.Len())); !st.Ok() {
			t.Fatalf("write at %d: %v", want.Len(), st)
		}
		want.WriteString(text)
		if held := r.fs.usage.held(); held.bytes > 10_000 {
			t.Fatalf("%d bytes are in memory", held.bytes)
		}
	}
	if st := f.writeAt(strings.Repeat("x", 10_001), uint64(want.Len())); st != fuse.Status(syscall.EFBIG) {
		t.Errorf("write of too long a line: %v", st)
	}
	f.close()
	r.wantBodies(want.String())
}

// TestInstalment_LinesWrittenOver: a long line does not cost an attempt to commit
// lines with each write, because there were some once.
func TestInstalment_LinesWrittenOver(t *testing.T) {
	r := newRig(t, Options{FileLimit: 1000})
	f := r.as(1).mustCreate("f")
	f.writeAt("\n", 0)
	f.writeAt("x", 0)
	f.writeAt(strings.Repeat("x", 1000), 1) // too large
	file := r.fs.handle(f.fh).file
	if file.newlines != 0 {
		t.Errorf("%d lines are counted", file.newlines)
	}
	f.close()
}

// TestInstalment_AfterRestart: what was committed is not published again, and what
// was staged behind it is committed.
func TestInstalment_AfterRestart(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(1).mustCreate("log")
	f.writeAt(line("a"), 0)
	r.pass(5 * time.Second)
	f.writeAt(line("b"), uint64(len(line("a"))))
	f.fsync()
	f.writeAt(line("lost"), uint64(2*len(line("a"))))
	r.restart()
	r.wantBodies(line("a") + line("b"))
}

// TestRaw_Lines: what is one message may have any number of lines.
func TestRaw_Lines(t *testing.T) {
	r := newRig(t, Options{Format: ingest.NewRaw("key")})
	f := r.as(1).mustCreate("f")
	if st := f.writeAt(strings.Repeat("\n", maxLines+1), 0); !st.Ok() {
		t.Error(st)
	}
	f.close()
	if got := r.stats().Ready; got != 1 {
		t.Errorf("%d messages", got)
	}
}

// TestRaw_FileIsTheMessage: with the format raw a file is one message of any
// bytes, however often it is flushed, and not in instalments.
func TestRaw_FileIsTheMessage(t *testing.T) {
	r := newRig(t, Options{Format: ingest.NewRaw("a.key"), MessageLimit: 100})
	f := r.as(1).mustCreate("f")
	f.writeAt("\x00any\n", 0)
	f.flush()
	r.pass(time.Hour)
	f.writeAt("bytes", 5)
	f.close()
	for m, err := range r.route.Pending() {
		if err != nil || m.Key != "a.key" || !m.HasKey || m.Line != 1 {
			t.Errorf("the message is %+v, %v", m, err)
		}
	}
	r.wantBodies("\x00any\nbytes")
	f = r.as(1).mustCreate("g")
	if st := f.writeAt("x", 100); st != fuse.Status(syscall.EFBIG) {
		t.Errorf("write over the limit of a message: %v", st)
	}
	f.close()
	r.as(1).put(".h", "held")
	r.as(1).rename(".h", "h")
	r.wantBodies("held")
}
