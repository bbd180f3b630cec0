package fs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// TestStatusID: a node id says all that there is to know of a node, and is no
// other's.
func TestStatusID(t *testing.T) {
	seen := map[uint64]statusID{}
	for range 1000 {
		for kind := kindFlat; kind <= kindPartial; kind++ {
			id := statusID{kind, uint16(rand.N(maxRoutes)), uint8(rand.N(16)), rand.N(uint64(maxNumber))}
			node := id.node()
			if got := parseStatusID(node); got != id || !inStatus(node) {
				t.Fatalf("%+v became %+v", id, got)
			}
			if other, ok := seen[node]; ok && other != id {
				t.Fatalf("%+v and %+v are one node", id, other)
			}
			seen[node] = id
		}
	}
	if parseStatusID(statusNode) != (statusID{}) || statusID.node(statusID{}) != statusNode || inStatus(rootNode) || inStatus(firstNode) {
		t.Error("the roots are mixed up")
	}
}

// path looks up what has a path below .status, as root.
func (r *rig) path(path string) (fuse.EntryOut, fuse.Status) {
	out := fuse.EntryOut{NodeId: statusNode}
	for name := range strings.SplitSeq(path, "/") {
		in := r.as(0).header(out.NodeId)
		if st := r.fs.Lookup(nil, &in, name, &out); !st.Ok() {
			return out, st
		}
	}
	return out, fuse.OK
}

func (r *rig) mustPath(path string) fuse.EntryOut {
	r.t.Helper()
	out, st := r.path(path)
	if !st.Ok() {
		r.t.Fatalf("lookup of %s: %v", path, st)
	}
	return out
}

// content reads a file below .status whole.
func (r *rig) content(path string) string {
	r.t.Helper()
	f, st := r.as(0).openNode(r.mustPath(path).NodeId, syscall.O_RDONLY)
	if !st.Ok() {
		r.t.Fatalf("open %s: %v", path, st)
	}
	defer f.release()
	return f.read(1 << 20)
}

func (r *rig) remove(dir, name string) fuse.Status {
	in := r.as(0).header(r.mustPath(dir).NodeId)
	return r.fs.Unlink(nil, &in, name)
}

func (r *rig) move(dir, name string) fuse.Status {
	in := fuse.RenameIn{InHeader: r.as(0).header(r.mustPath(dir).NodeId), Newdir: rootNode}
	return r.fs.Rename(nil, &in, name, name)
}

// openedDir is an open directory as a process has it.
type openedDir struct {
	r        *rig
	node, fh uint64
	offset   uint64
}

func (r *rig) openDir(path string) *openedDir {
	r.t.Helper()
	in := fuse.OpenIn{InHeader: r.as(0).header(r.mustPath(path).NodeId)}
	var out fuse.OpenOut
	if st := r.fs.OpenDir(nil, &in, &out); !st.Ok() {
		r.t.Fatalf("open directory %s: %v", path, st)
	}
	return &openedDir{r, in.NodeId, out.Fh, 0}
}

// next reads entries into a buffer of the given size, and takes as many of them
// as it is told.
func (d *openedDir) next(size, most int) (names []string) {
	d.r.t.Helper()
	in := fuse.ReadIn{InHeader: d.r.as(0).header(d.node), Fh: d.fh, Offset: d.offset}
	buf := make([]byte, size)
	list := fuse.NewDirEntryList(buf, d.offset)
	if st := d.r.fs.ReadDir(nil, &in, list); !st.Ok() {
		d.r.t.Fatalf("read directory: %v", st)
	}
	for rest := list.Bytes(); len(rest) > 0 && len(names) < most; {
		var e parsedEntry
		rest = e.parse(rest)
		d.offset = e.offset
		names = append(names, e.name)
	}
	return names
}

func (d *openedDir) all() (names []string) {
	for {
		more := d.next(1000, 1000)
		if len(more) == 0 {
			return names
		}
		names = append(names, more...)
	}
}

// dead stores n dead letters and returns their IDs.
func (r *rig) dead(n int) []string {
	r.t.Helper()
	f := queue.NewFileID()
	ms, ids := make([]queue.Message, n), make([]string, n)
	for i := range ms {
		ms[i] = queue.Message{
			ID: f.MessageID(uint32(i + 1)), Line: uint32(i + 1), File: "f", UID: 7, Ingested: time.Unix(1, 0),
			Words: []string{"a"}, Body: []byte("body"), Reason: "refused-by-broker: it says so", Attempts: 3,
		}
		ids[i] = string(ms[i].ID)
	}
	if err := r.route.Append(ms); err != nil {
		r.t.Fatal(err)
	}
	return ids
}

// TestStatusTree_ListsWhileItChanges: whatever goes meanwhile, all that stays is
// listed once and in order, with buffers of any size, and a reader may go back.
func TestStatusTree_ListsWhileItChanges(t *testing.T) {
	r := newRig(t, Options{})
	ids := r.dead(3*pageEntries + 5)
	d := r.openDir("routes/default/dead")
	var got []string
	removed := map[string]bool{}
	for {
		names := d.next(100+rand.N(3000), 1+rand.N(40))
		if len(names) == 0 {
			break
		}
		got = append(got, names...)
		// One that was listed, perhaps the last, and one that was not.
		if len(got) > 2 {
			for _, id := range []string{got[len(got)-1], ids[len(ids)-1-len(removed)]} {
				if st := r.remove("routes/default/dead", id); st.Ok() && !slices.Contains(got, id) {
					removed[id] = true
				}
			}
		}
	}
	isRemoved := func(id string) bool { return removed[id] }
	want := append([]string{".", ".."}, slices.DeleteFunc(ids, isRemoved)...)
	if got := slices.DeleteFunc(got, isRemoved); !slices.Equal(got, want) || len(removed) < 10 {
		t.Errorf("listed %d names that stay, want %d; %d were removed", len(got), len(want), len(removed))
	}
	d.offset = 0
	whole := d.all()
	for range 20 {
		d.offset = uint64(rand.N(len(whole)))
		want := whole[d.offset:]
		if got := d.all(); !slices.Equal(got, want) {
			t.Fatalf("going back gave %d names, want %d", len(got), len(want))
		}
	}
}

// TestStatusTree_FindsWithoutScan: what was listed is found at its place.
func TestStatusTree_FindsWithoutScan(t *testing.T) {
	r := newRig(t, Options{})
	ids := r.dead(10)
	if _, st := r.path("routes/default/dead/" + ids[5]); !st.Ok() {
		t.Errorf("what was not listed is not found: %v", st)
	}
	r.openDir("routes/default/dead").all()
	scans := r.fs.tree.scans.Load()
	for _, id := range ids {
		out := r.mustPath("routes/default/dead/" + id)
		if out.Attr.Uid != 7 || out.Attr.Mode != syscall.S_IFREG|0o440 || out.Attr.Mtime != 1 {
			t.Errorf("attributes are %+v", out.Attr)
		}
		if got := len(r.content("routes/default/dead/" + id)); uint64(got) != out.Attr.Size {
			t.Errorf("%d bytes, stat says %d", got, out.Attr.Size)
		}
	}
	if got := r.fs.tree.scans.Load(); got != scans {
		t.Errorf("%d scans", got-scans)
	}
	for _, id := range ids {
		if st := r.remove("routes/default/dead", id); !st.Ok() {
			t.Error(st)
		}
	}
	if _, st := r.path("routes/default/dead/" + ids[5]); st != fuse.ENOENT {
		t.Errorf("what is gone: %v", st)
	}
	if s := r.stats(); s != (queue.Stats{}) || r.fs.Stats().PurgedTotal != 10 {
		t.Errorf("left: %+v, %+v", s, r.fs.Stats())
	}
}

// TestStatusTree_MessageText: the head is sorted lines, and the body is as it is.
func TestStatusTree_MessageText(t *testing.T) {
	r := newRig(t, Options{})
	m := queue.Message{
		ID: "parent/next", Line: 2, File: "odd\nname\xff", UID: 7, Ingested: time.Unix(1, 5), Attempts: 3,
		Words: []string{"a", "", "b c"}, Exchange: "x", ContentType: "text/plain", PubTime: time.Unix(2, 0),
		Headers: []queue.Header{{Name: "h 1", Value: `say "\"`}}, Body: []byte("\x00\nbody"),
		Reason: "too-large: 17 MiB",
	}
	if err := r.route.Append([]queue.Message{m}); err != nil {
		t.Fatal(err)
	}
	want := "attempts 3\ncontent_type text/plain\nexchange x\nfile odd\\nname\\xff\n" +
		"header.h\\x201 say \"\\\\\"\nid parent/next\ningested 1970-01-01T00:00:01.000000005Z\nline 2\n" +
		"pub_time 1970-01-01T00:00:02Z\nreason too-large: 17 MiB\nsize 6\nuid 7\nwords a..b c\n\n\x00\nbody"
	if got := r.content("routes/default/dead/parent%2Fnext"); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// TestStatusTree_Names: any ID makes a name that exists.
func TestStatusTree_Names(t *testing.T) {
	long := strings.Repeat("x", 250)
	seen := map[string]bool{}
	for _, e := range []queue.Entry{
		{Message: &queue.Message{ID: "a/b"}},
		{Message: &queue.Message{ID: "a%2Fb"}},
		{Message: &queue.Message{ID: "\x00"}},
		{Message: &queue.Message{}},
		{Message: &queue.Message{ID: "drawn anew each time", Reason: "corrupt-record: x"}, Place: queue.Place{Seq: 4}},
		{Message: &queue.Message{File: long, ID: "12345678-1"}},
		{Message: &queue.Message{File: long, ID: "12345678-2"}},
		{Message: &queue.Message{File: "/../", ID: "1"}},
	} {
		name := messageName(statusID{kind: kindPartialDir}, e)
		if seen[name] || name == "" || len(name) > maxName || strings.ContainsAny(name, "/\x00") {
			t.Errorf("%+v has the name %q", e.Message, name)
		}
		seen[name] = true
	}
}

// TestStatusTree_Redrive: what was a message goes again as it was; what never was
// one is decoded anew.
func TestStatusTree_Redrive(t *testing.T) {
	r := newRig(t, Options{})
	id := r.dead(1)[0]
	f := r.as(7).mustCreate("f")
	f.writeAt("garbage\n", 0)
	f.close()
	if st := r.move("routes/default/dead", id); !st.Ok() {
		t.Fatal(st)
	}
	for m, err := range r.route.Pending() {
		if err != nil || string(m.ID) != id || m.Reason != "" || m.Attempts != 0 || string(m.Body) != "body" || m.UID != 7 {
			t.Errorf("redriven: %+v, %v", m, err)
		}
	}
	d := r.openDir("routes/default/dead")
	garbage := d.all()[2]
	if st := r.move("routes/default/dead", garbage); st != fuse.Status(syscall.EBADMSG) {
		t.Errorf("garbage moved: %v", st)
	}
	// A newer version may understand it.
	root := r.fs.root.route
	root.format = replaceFormat{root.format, "garbage\n", line("x")}
	if st := r.move("routes/default/dead", garbage); !st.Ok() {
		t.Errorf("what is a message now: %v", st)
	}
	if st := r.move("routes/default/dead", garbage); st != fuse.ENOENT {
		t.Errorf("moved twice: %v", st)
	}
	if got, want := r.bodies(), "body"+line("x"); got != want {
		t.Errorf("published %q, want %q", got, want)
	}
	if s := r.stats(); s.Dead != 0 || r.fs.Stats().RedrivenTotal != 2 {
		t.Errorf("left: %+v, %+v", s, r.fs.Stats())
	}
}

// TestStatusTree_Partial: a partial file is its raw content. Moved out it is
// decoded, with the IDs that its lines would have had; removed it is gone.
func TestStatusTree_Partial(t *testing.T) {
	r := newRig(t, Options{})
	f := queue.NewFileID()
	partial := func(line uint32, body string) string {
		m := queue.Message{
			ID: f.MessageID(line), Line: line, File: ".f.tmp", UID: 7, Ingested: time.Unix(1, 0),
			Body: []byte(body), Partial: true, Reason: "torn",
		}
		if err := r.route.Append([]queue.Message{m}); err != nil {
			t.Fatal(err)
		}
		return ".f.tmp." + string(m.ID)
	}
	torn := partial(1, "{")
	tail := partial(3, strings.TrimSuffix(line("3"), "\n"))
	whole := partial(4, line("4")+"garbage\n"+line("6"))
	if got := r.content("partial/" + whole); got != line("4")+"garbage\n"+line("6") {
		t.Errorf("content is %q", got)
	}
	if st := r.move("partial", torn); st != fuse.Status(syscall.EBADMSG) {
		t.Errorf("torn moved: %v", st)
	}
	for _, name := range []string{tail, whole} {
		if st := r.move("partial", name); !st.Ok() {
			t.Errorf("%s moved: %v", name, st)
		}
	}
	var got []string
	for _, list := range []func(func(*queue.Message, error) bool){r.route.Pending(), r.route.Dead()} {
		for m, err := range list {
			got = append(got, fmt.Sprint(m.ID, " ", m.UID, " ", m.File, " ", m.Reason, err))
		}
	}
	want := []string{
		fmt.Sprint(f.MessageID(3), " 7 .f.tmp <nil>"), fmt.Sprint(f.MessageID(4), " 7 .f.tmp <nil>"),
		fmt.Sprint(f.MessageID(6), " 7 .f.tmp <nil>"), fmt.Sprint(f.MessageID(5), " 7 .f.tmp not-json<nil>"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if st := r.remove("partial", torn); !st.Ok() || r.stats().Partial != 0 {
		t.Errorf("remove: %v, left %+v", st, r.stats())
	}
}

// replaceFormat decodes a text in place of another.
type replaceFormat struct {
	ingest.Format
	from, to string
}

func (f replaceFormat) Decode(data []byte, at ingest.Position) ingest.Result {
	return f.Format.Decode([]byte(strings.ReplaceAll(string(data), f.from, f.to)), at)
}

// TestStatusTree_MessageTriedAgain: a message that was tried again is another
// node, and an open file stays as it was.
func TestStatusTree_MessageTriedAgain(t *testing.T) {
	r := newRig(t, Options{})
	f := r.as(7).mustCreate("f")
	f.writeAt(line("1"), 0)
	f.close()
	name := r.openDir("routes/default/pending").all()[2]
	first := r.mustPath("routes/default/pending/" + name)
	open, st := r.as(0).openNode(first.NodeId, syscall.O_RDONLY)
	if !st.Ok() {
		t.Fatal(st)
	}
	before := open.read(1000)
	leases, err := r.route.Lease(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if st := r.remove("routes/default/pending", name); st != fuse.EBUSY {
		t.Errorf("removed while it is being published: %v", st)
	}
	if err := r.route.Nack(leases[0], time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, st := r.path("routes/default/pending/" + name); st != fuse.ENOENT {
		t.Errorf("a delayed message is still pending: %v", st)
	}
	if text := r.content("routes/default/delayed/" + name); !strings.Contains(text, "\ndue 2") || !strings.HasPrefix(text, "attempts 1\n") {
		t.Errorf("the delayed message is\n%s", text)
	}
	if err := r.route.Hasten(); err != nil {
		t.Fatal(err)
	}
	second := r.mustPath("routes/default/pending/" + name)
	if second.NodeId == first.NodeId || second.Attr.Ino != first.Attr.Ino {
		t.Errorf("nodes %x and %x, inodes %x and %x", first.NodeId, second.NodeId, first.Attr.Ino, second.Attr.Ino)
	}
	if _, st := r.as(0).openNode(first.NodeId, syscall.O_RDONLY); st != fuse.Status(syscall.ESTALE) {
		t.Errorf("the old node opens: %v", st)
	}
	if got := open.read(1000); got != before || before == r.content("routes/default/pending/"+name) {
		t.Errorf("the open file has changed from\n%s\nto\n%s", before, got)
	}
}

// TestStatusTree_DelayedForgotten: a delayed message whose time is not
// remembered any more is found all the same, and can be moved.
func TestStatusTree_DelayedForgotten(t *testing.T) {
	r := newRig(t, Options{})
	r.fs.tree.dues = newRecent[uint64, int64](2)
	f := r.as(7).mustCreate("f")
	f.writeAt(line("1")+line("2")+line("3")+line("4"), 0)
	f.close()
	leases, err := r.route.Lease(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range leases {
		if err := r.route.Nack(l, time.Now().Add(time.Hour+time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	names := r.openDir("routes/default/delayed").all()[2:]
	for i, name := range names {
		if text := r.content("routes/default/delayed/" + name); !strings.Contains(text, fmt.Sprintf("\nline %d\n", i+1)) {
			t.Errorf("message %d is\n%s", i, text)
		}
	}
	if st := r.move("routes/default/delayed", names[2]); !st.Ok() {
		t.Error(st)
	}
	if got := r.bodies(); got != line("3") {
		t.Errorf("published %q", got)
	}
}

// TestStatusTree_Control: commands are run if all are known; ctl shows them.
func TestStatusTree_Control(t *testing.T) {
	var ran []string
	failure := errors.New("cannot")
	r := newRig(t, Options{Commands: map[string]Command{
		"one":  {Help: "does one", Run: func() error { ran = append(ran, "one"); return nil }},
		"two":  {Help: "does two", Run: func() error { ran = append(ran, "two"); return nil }},
		"fail": {Help: "fails", Run: func() error { return failure }},
	}})
	if got, want := r.content("ctl"), "fail fails\none does one\ntwo does two\n"; got != want {
		t.Errorf("ctl shows %q", got)
	}
	f, st := r.as(0).openNode(r.mustPath("ctl").NodeId, syscall.O_WRONLY)
	if !st.Ok() {
		t.Fatal(st)
	}
	defer f.release()
	for text, want := range map[string]fuse.Status{
		"one\n": fuse.OK, "two one": fuse.OK, "two nonsense": fuse.EINVAL, "fail\n": fuse.EIO, "": fuse.OK,
	} {
		ran = nil
		if st := f.writeAt(text, 0); st != want {
			t.Errorf("%q gave %v, want %v", text, st, want)
		}
		if done := strings.Join(ran, " "); st.Ok() != (done == strings.TrimSpace(text)) && done != "" {
			t.Errorf("%q ran %q", text, done)
		}
	}
}

// TestRecent: what was used last stays, and no more than may be.
func TestRecent(t *testing.T) {
	r := newRecent[int, int](100)
	for i := range 1000 {
		r.put(i, -i)
		if v, ok := r.get(0); !ok || v != 0 {
			t.Fatalf("after %d: %d, %t", i, v, ok)
		}
		if v, ok := r.get(i); !ok || v != -i {
			t.Fatalf("after %d: %d, %t", i, v, ok)
		}
	}
	if n := len(r.young) + len(r.old); n > 100 {
		t.Errorf("%d entries are kept", n)
	}
	if _, ok := r.get(100); ok {
		t.Error("an old entry is still there")
	}
}

// parsedEntry is an entry of a READDIR.
type parsedEntry struct {
	offset uint64
	name   string
}

// parse reads the first entry and returns what is behind it: inode 8, offset 8,
// length of the name 4, type 4, the name, padding to 8.
func (e *parsedEntry) parse(b []byte) []byte {
	n := int(binary.NativeEndian.Uint32(b[16:]))
	e.offset, e.name = binary.NativeEndian.Uint64(b[8:]), string(b[24:24+n])
	return b[(24+n+7)/8*8:]
}

// TestStatusTree_MovedNameStays: mv looks at what it has moved; nobody else sees
// the name, and it goes.
func TestStatusTree_MovedNameStays(t *testing.T) {
	r := newRig(t, Options{})
	id := r.dead(1)[0]
	in := fuse.RenameIn{InHeader: r.as(0).header(r.mustPath("routes/default/dead").NodeId), Newdir: rootNode}
	if st := r.fs.Rename(nil, &in, id, "moved"); !st.Ok() {
		t.Fatal(st)
	}
	if _, st := r.as(0).lookup("moved"); !st.Ok() {
		t.Errorf("who moved it does not see it: %v", st)
	}
	for _, u := range []user{r.as(0).process(7), r.as(7)} {
		if _, st := u.lookup("moved"); st != fuse.ENOENT {
			t.Errorf("another process sees it: %v", st)
		}
	}
	r.pass(2 * graceTime)
	if _, st := r.as(0).lookup("moved"); st != fuse.ENOENT || len(r.fs.nodes) != 0 {
		t.Errorf("it stays: %v, %d nodes", st, len(r.fs.nodes))
	}
}

// TestStatusTree_Open: what a user has open or held is shown with its path and
// size, and nothing else.
func TestStatusTree_Open(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(7)
	d := u.mustMkdir("d", 0o755)
	long := strings.Repeat("x", maxName)
	for _, f := range []*opened{u.mustCreate("f"), d.mustCreate("100% g"), d.mustCreate(long), u.mustCreate(".held")} {
		f.writeAt("abc", 0)
		defer f.close()
	}
	r.as(8).mustCreate("f8")
	u.put("closed", line("1"))
	names := r.openDir("open/7").all()[2:]
	slices.Sort(names)
	want := []string{".held", "d%2F100%25 g", escapeName("d/" + long), "f"}
	if !slices.Equal(names, want) {
		t.Errorf("listed %q, want %q", names, want)
	}
	for _, name := range names {
		out := r.mustPath("open/7/" + name)
		if out.Attr.Size != 3 || out.Attr.Uid != 7 {
			t.Errorf("%s: %+v", name, out.Attr)
		}
		if _, st := r.as(0).openNode(out.NodeId, syscall.O_RDONLY); st != fuse.EACCES {
			t.Errorf("%s opens: %v", name, st)
		}
	}
	for _, path := range []string{"open/7/f8", "open/7/closed", "open/7/d", "open/7/d%2Fnone", "open/7/none%2Fg", "open/9", "open/07", "open/-1"} {
		if _, st := r.path(path); st != fuse.ENOENT {
			t.Errorf("%s: %v", path, st)
		}
	}
	users := r.openDir("open").all()[2:]
	slices.Sort(users)
	if !slices.Equal(users, []string{"7", "8"}) {
		t.Errorf("users are %q", users)
	}
}
