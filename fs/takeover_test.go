package fs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/shm"
)

// serveAgain serves the connection of a script with the file system that has
// taken over. The script plays the kernel, which resends what it got no reply to.
func (r *rig) serveAgain(c *script) *server {
	r.t.Helper()
	if r.memory.Init() == nil {
		if err := r.memory.SetInit(testInit()); err != nil {
			r.t.Fatal(err)
		}
	}
	s, err := newServer(r.fs, c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.fs.server.Store(s)
	r.memory.CountStart()
	return s
}

// execute has a request carried out in a slot. If it is not finished, it looks as
// if the process had died before it could reply.
func (r *rig) execute(s *server, request []byte, finish bool) []byte {
	r.t.Helper()
	h := s.slots.take(func() {})
	h.slot.Reading()
	copy(h.slot.Buffer(), request)
	h.request = h.slot.Begin(len(request))
	out := make([]byte, 64<<10)
	n := s.handle(h, out)
	if finish {
		h.slot.End()
		s.slots.give(h)
	}
	return bytes.Clone(out[:n])
}

// again is a request that is resent.
func again(request []byte) []byte {
	b := bytes.Clone(request)
	binary.LittleEndian.PutUint64(b[8:], binary.LittleEndian.Uint64(b[8:])|shm.Resent)
	return b
}

// sameReply compares replies, but for the mark of what was resent.
func sameReply(a, b []byte) bool {
	b = bytes.Clone(b)
	if len(b) >= 16 {
		binary.LittleEndian.PutUint64(b[8:], binary.LittleEndian.Uint64(b[8:])&^shm.Resent)
	}
	return bytes.Equal(a, b)
}

// The codes of more requests.
const (
	codeSetAttr = 4
	codeMkdir   = 9
	codeUnlink  = 10
	codeRmdir   = 11
	codeRename  = 45
	codeOpen    = 14
	codeRelease = 18
	codeFsync   = 20
	codeCreate  = 35
)

// replayCase makes what a request needs, and the request.
type replayCase struct {
	name string
	make func(r *rig, u user) []byte
}

// replayCases are all handlers that change something.
var replayCases = []replayCase{
	{"create", func(_ *rig, u user) []byte {
		in := fuse.CreateIn{InHeader: u.header(rootNode), Flags: syscall.O_CREAT | syscall.O_EXCL | syscall.O_WRONLY, Mode: 0o644}
		return encode(codeCreate, &in, "new\x00")
	}},
	{"create held", func(_ *rig, u user) []byte {
		in := fuse.CreateIn{InHeader: u.header(rootNode), Flags: syscall.O_CREAT | syscall.O_EXCL | syscall.O_WRONLY, Mode: 0o644}
		return encode(codeCreate, &in, ".new\x00")
	}},
	{"open", func(_ *rig, u user) []byte {
		f := u.mustCreate("f")
		return encode(codeOpen, &fuse.OpenIn{InHeader: u.header(f.node), Flags: syscall.O_WRONLY | syscall.O_TRUNC})
	}},
	{"open to truncate", func(_ *rig, u user) []byte {
		f := u.mustCreate(".f")
		f.writeAt(line("a"), 0)
		f.close()
		node, _ := u.lookup(".f")
		return encode(codeOpen, &fuse.OpenIn{InHeader: u.header(node), Flags: syscall.O_WRONLY | syscall.O_TRUNC})
	}},
	{"open to read", func(_ *rig, u user) []byte {
		f := u.mustCreate("f")
		return encode(codeOpen, &fuse.OpenIn{InHeader: u.header(f.node)})
	}},
	{"append", func(_ *rig, u user) []byte {
		f := u.mustCreate("f")
		f.writeAt(line("a"), 0)
		in := fuse.WriteIn{InHeader: u.header(f.node), Fh: f.fh, Flags: syscall.O_APPEND, Size: uint32(len(line("b")))}
		return encode(codeWrite, &in, line("b"))
	}},
	{"append held", func(_ *rig, u user) []byte {
		f := u.mustCreate(".f")
		f.writeAt(line("a"), 0)
		f.flush()
		in := fuse.WriteIn{InHeader: u.header(f.node), Fh: f.fh, Flags: syscall.O_APPEND, Size: uint32(len(line("b")))}
		return encode(codeWrite, &in, line("b"))
	}},
	{"write behind an instalment", func(r *rig, u user) []byte {
		f := u.mustCreate("f")
		f.writeAt(line("a"), 0)
		in := fuse.WriteIn{InHeader: u.header(f.node), Fh: f.fh, Size: uint32(len(line("b"))), Offset: uint64(len(line("a")))}
		return encode(codeWrite, &in, line("b"))
	}},
	{"flush", func(_ *rig, u user) []byte {
		f := u.mustCreate("f")
		f.writeAt(line("a")+line("b"), 0)
		return encode(codeFlush, &fuse.FlushIn{InHeader: u.header(f.node), Fh: f.fh})
	}},
	{"fsync held", func(_ *rig, u user) []byte {
		f := u.mustCreate(".f")
		f.writeAt(line("a")+line("b"), 0)
		return encode(codeFsync, &fuse.FsyncIn{InHeader: u.header(f.node), Fh: f.fh})
	}},
	{"release", func(_ *rig, u user) []byte {
		f := u.mustCreate("f")
		f.writeAt(line("a"), 0)
		f.flush()
		return encode(codeRelease, &fuse.ReleaseIn{InHeader: u.header(f.node), Fh: f.fh})
	}},
	{"release of what was not flushed", func(_ *rig, u user) []byte {
		f := u.mustCreate("f")
		f.writeAt(line("a"), 0)
		return encode(codeRelease, &fuse.ReleaseIn{InHeader: u.header(f.node), Fh: f.fh})
	}},
	{"truncate", func(_ *rig, u user) []byte {
		f := u.mustCreate("f")
		f.writeAt(line("a")+line("b"), 0)
		in := fuse.SetAttrIn{}
		in.InHeader, in.Valid, in.Size, in.Fh = u.header(f.node), fuse.FATTR_SIZE|fuse.FATTR_FH, uint64(len(line("a"))), f.fh
		return encode(codeSetAttr, &in)
	}},
	{"truncate held by name", func(_ *rig, u user) []byte {
		f := u.mustCreate(".f")
		f.writeAt(line("a")+line("b"), 0)
		f.close()
		node, _ := u.lookup(".f")
		in := fuse.SetAttrIn{}
		in.InHeader, in.Valid, in.Size = u.header(node), fuse.FATTR_SIZE, uint64(len(line("a")))
		return encode(codeSetAttr, &in)
	}},
	{"chmod", func(_ *rig, u user) []byte {
		f := u.mustCreate("f")
		in := fuse.SetAttrIn{}
		in.InHeader, in.Valid, in.Mode = u.header(f.node), fuse.FATTR_MODE, 0o600
		return encode(codeSetAttr, &in)
	}},
	{"unlink", func(_ *rig, u user) []byte {
		u.mustCreate("f").writeAt(line("a"), 0)
		in := u.header(rootNode)
		return encode(codeUnlink, &in, "f\x00")
	}},
	{"unlink held", func(_ *rig, u user) []byte {
		u.put(".f", line("a"))
		in := u.header(rootNode)
		return encode(codeUnlink, &in, ".f\x00")
	}},
	{"unlink held that was never flushed", func(_ *rig, u user) []byte {
		u.mustCreate(".f").writeAt(line("a"), 0)
		in := u.header(rootNode)
		return encode(codeUnlink, &in, ".f\x00")
	}},
	{"rename held over one that was never flushed", func(_ *rig, u user) []byte {
		u.put(".f", line("a"))
		u.mustCreate(".g").writeAt(line("b"), 0)
		return encode(codeRename, &fuse.RenameIn{InHeader: u.header(rootNode), Newdir: rootNode}, ".f\x00.g\x00")
	}},
	{"unlink held that is open", func(_ *rig, u user) []byte {
		f := u.mustCreate(".f")
		f.writeAt(line("a"), 0)
		f.flush()
		in := u.header(rootNode)
		return encode(codeUnlink, &in, ".f\x00")
	}},
	{"rename", func(_ *rig, u user) []byte {
		u.mustCreate("f").writeAt(line("a"), 0)
		return encode(codeRename, &fuse.RenameIn{InHeader: u.header(rootNode), Newdir: rootNode}, "f\x00g\x00")
	}},
	{"rename held", func(_ *rig, u user) []byte {
		u.put(".f", line("a"))
		return encode(codeRename, &fuse.RenameIn{InHeader: u.header(rootNode), Newdir: rootNode}, ".f\x00.g\x00")
	}},
	{"rename held over held", func(_ *rig, u user) []byte {
		u.put(".f", line("a"))
		u.put(".g", line("b"))
		return encode(codeRename, &fuse.RenameIn{InHeader: u.header(rootNode), Newdir: rootNode}, ".f\x00.g\x00")
	}},
	{"publish", func(_ *rig, u user) []byte {
		u.put(".f", line("a")+line("b"))
		return encode(codeRename, &fuse.RenameIn{InHeader: u.header(rootNode), Newdir: rootNode}, ".f\x00g\x00")
	}},
	{"publish what is open", func(_ *rig, u user) []byte {
		f := u.mustCreate(".f")
		f.writeAt(line("a")+line("b")[:10], 0)
		f.flush()
		return encode(codeRename, &fuse.RenameIn{InHeader: u.header(rootNode), Newdir: rootNode}, ".f\x00g\x00")
	}},
	{"mkdir", func(_ *rig, u user) []byte {
		return encode(codeMkdir, &fuse.MkdirIn{InHeader: u.header(rootNode), Mode: 0o755}, "d\x00")
	}},
	{"rmdir", func(_ *rig, u user) []byte {
		u.mustMkdir("d", 0o755)
		in := u.header(rootNode)
		return encode(codeRmdir, &in, "d\x00")
	}},
	{"rename directory", func(_ *rig, u user) []byte {
		d := u.mustMkdir("d", 0o755)
		d.put(".f", line("a"))
		d.mustMkdir("sub", 0o700).mustCreate("g")
		return encode(codeRename, &fuse.RenameIn{InHeader: u.header(rootNode), Newdir: rootNode}, "d\x00e\x00")
	}},
	{"purge", func(r *rig, u user) []byte {
		id := r.dead(2)[0]
		in := r.as(0).header(r.mustPath("routes/default/dead").NodeId)
		return encode(codeUnlink, &in, id+"\x00")
	}},
	{"redrive", func(r *rig, u user) []byte {
		id := r.dead(2)[0]
		in := fuse.RenameIn{InHeader: r.as(0).header(r.mustPath("routes/default/dead").NodeId), Newdir: rootNode}
		return encode(codeRename, &in, id+"\x00"+id+"\x00")
	}},
	{"command", func(r *rig, u user) []byte {
		f, st := r.as(0).openNode(r.mustPath("ctl").NodeId, syscall.O_WRONLY)
		if !st.Ok() {
			r.t.Fatal(st)
		}
		return encode(codeWrite, &fuse.WriteIn{InHeader: f.header(f.node), Fh: f.fh, Size: 5}, "count")
	}},
}

// state describes all that a user can see, and what is stored, but for times and
// ids that are drawn.
func (r *rig) state() string {
	r.t.Helper()
	var b strings.Builder
	r.fs.mu.Lock()
	var names []string
	for _, n := range r.fs.nodes {
		content := ""
		if f := n.youngestLocked(); f != nil {
			content = fmt.Sprintf("%d bytes from %d, %d handles, %d writers, held %t, ended %t, abandoned %t", f.size.Load(), f.base, f.handles, f.writers, f.held, f.ended, f.abandoned.Load())
		}
		names = append(names, fmt.Sprintf("%d %q named %t of %d mode %o, %d handles, %d graces, %s", n.id, n.key.name, n.named, n.owner, n.mode, len(n.handles), len(n.graces), content))
	}
	for _, d := range r.fs.dirs {
		if !d.standing && d != r.fs.root {
			names = append(names, fmt.Sprintf("dir %d %q in %d mode %o", d.id, d.name, d.parent.id, d.mode))
		}
	}
	for fh, h := range r.fs.handles {
		names = append(names, fmt.Sprintf("handle %d of node %d, file %d, writer %t, process %d", fh, h.node.id, h.file.id, h.writer, h.process))
	}
	names = append(names, fmt.Sprintf("%d held, usage %+v", len(r.fs.held), r.fs.usage.held()))
	r.fs.mu.Unlock()
	slices.Sort(names)
	b.WriteString(strings.Join(names, "\n"))
	s := r.stats()
	fmt.Fprintf(&b, "\nready %d dead %d staged %d partial %d\n", s.Ready, s.Dead, s.Staged, s.Partial)
	return b.String()
}

// TestReplay: each handler that is called twice with one request gives one reply
// and has one effect, in the same process and in one that took over in between.
func TestReplay(t *testing.T) {
	for _, tt := range replayCases {
		for _, other := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/other=%t", tt.name, other), func(t *testing.T) {
				ran := 0
				r := &rig{t: t, store: t.TempDir(), epoch: time.Unix(1e9, 0), opts: Options{Commands: map[string]Command{
					"count": {Run: func() error { ran++; return nil }},
				}}}
				r.start()
				defer r.stop()
				s := r.serveAgain(newScript())
				request := tt.make(r, r.as(7))
				first := r.execute(s, request, false)
				before := r.state()
				if len(first) >= 8 && errnoOf(first) != 0 {
					t.Fatalf("first: %v", errnoOf(first))
				}
				if other {
					r.takeOver()
					s = r.serveAgain(newScript())
					if after := r.state(); after != before {
						t.Errorf("before the take-over\n%s\nafter it\n%s", before, after)
					}
				}
				second := r.execute(s, again(request), true)
				if !sameReply(first, second) {
					t.Errorf("replies\n%x\n%x", first, second)
				}
				if after := r.state(); after != before {
					t.Errorf("after the first\n%s\nafter the second\n%s", before, after)
				}
				if tt.name == "command" && ran != 1 {
					t.Errorf("the command ran %d times", ran)
				}
			})
		}
	}
}

// TestReplay_AnsweredTruncate: where requests are taken from the memory, one may come
// again that was answered. A truncation that does takes nothing away of what its
// writer has written since, and a chmod does not undo a later one.
func TestReplay_AnsweredTruncate(t *testing.T) {
	r := newRig(t, Options{})
	s := r.serveAgain(newScript())
	f := r.as(7).mustCreate("f")
	f.writeAt(line("000001")+line("000002"), 0)
	in := fuse.SetAttrIn{}
	in.InHeader, in.Fh = f.header(f.node), f.fh
	in.Valid, in.Size, in.Mode = fuse.FATTR_SIZE|fuse.FATTR_FH|fuse.FATTR_MODE, uint64(len(line("000001"))), 0o600
	request := encode(codeSetAttr, &in)
	r.execute(s, request, false)
	if st := f.writeAt(line("000003"), uint64(len(line("000001")))); !st.Ok() {
		t.Fatal(st)
	}
	f.chmod(f.node, 0o640)
	r.takeOver()
	s = r.serveAgain(newScript())
	if got := errnoOf(r.execute(s, again(request), true)); got != 0 {
		t.Errorf("the reply is %v", got)
	}
	if _, attr, _ := r.as(7).stat("f"); attr.Mode&0o777 != 0o640 {
		t.Errorf("the mode is %o", attr.Mode)
	}
	f.close()
	r.wantBodies(line("000001") + line("000003"))
}

// TestTakeOver_HalfReleased proves G10: a process may die when a file has been
// given up by one of its handles wholly, and by another one only in part.
func TestTakeOver_HalfReleased(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	w := u.mustCreate("a")
	reader := u.mustOpen("a", syscall.O_RDONLY)
	if st := w.writeAt(line("000001"), 0); !st.Ok() {
		t.Fatal(st)
	}
	h := r.fs.handle(reader.fh)
	r.fs.mu.Lock()
	h.file.handles-- // as far as its RELEASE got
	r.fs.mu.Unlock()
	w.close()
	r.takeOver()
	if r.fs.handle(reader.fh) == nil {
		t.Error("the handle that was not quite released is not known")
	}
	reader.release()
	r.wantBodies(line("000001"))
	if err := r.checkRecords(); err != nil {
		t.Error(err)
	}
}
