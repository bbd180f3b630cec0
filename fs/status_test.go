package fs

import (
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/queue"
)

// TestStatusID: a node id says all that there is to know of a node, and is no
// other's.
func TestStatusID(t *testing.T) {
	seen := map[uint64]statusID{}
	for range 1000 {
		for kind := kindFlat; kind <= kindPage; kind++ {
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
