package fs

import (
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// TestReplay_AnsweredOpen: where requests are taken from the memory, a CREATE or an
// OPEN may come again that was answered and whose handle has been released since.
// Nobody would release what it opened once more.
func TestReplay_AnsweredOpen(t *testing.T) {
	r := newRig(t, Options{})
	s := r.serveAgain(newScript())
	u := r.as(7)
	create := fuse.CreateIn{InHeader: u.header(rootNode), Flags: syscall.O_CREAT | syscall.O_EXCL | syscall.O_WRONLY, Mode: 0o644}
	held := u.mustCreate(".held")
	held.writeAt(line("000002"), 0)
	held.flush()
	open := fuse.OpenIn{InHeader: u.header(held.node), Flags: syscall.O_WRONLY | syscall.O_TRUNC}
	var requests [][]byte
	for i, request := range [][]byte{encode(codeCreate, &create, "new\x00"), encode(codeOpen, &open)} {
		if got := errnoOf(r.execute(s, request, false)); got != 0 {
			t.Fatal(got)
		}
		requests = append(requests, request)
		h := r.fs.handle([]uint64{create.Unique, open.Unique}[i])
		f := &opened{u, h.node.id, h.fh, 0}
		f.writeAt(line("000001"), 0)
		f.close()
	}
	held.close()
	before := len(r.fs.handles)
	r.takeOver()
	s = r.serveAgain(newScript())
	for _, request := range requests {
		r.execute(s, again(request), true)
	}
	if got := len(r.fs.handles); got != before {
		t.Errorf("%d handles are open, %d were", got, before)
	}
	if f := r.as(7).mustOpen(".held", syscall.O_RDONLY); f.read(1000) != line("000001") {
		t.Errorf("the held file is now %q", f.read(1000))
	}
}

// TestReplay_AnsweredTruncatingOpen: nor does such an OPEN take away what was
// written through its handle since.
func TestReplay_AnsweredTruncatingOpen(t *testing.T) {
	r := newRig(t, Options{})
	s := r.serveAgain(newScript())
	u := r.as(7)
	u.put(".held", line("000001"))
	node, _ := u.lookup(".held")
	in := fuse.OpenIn{InHeader: u.header(node), Flags: syscall.O_WRONLY | syscall.O_TRUNC}
	request := encode(codeOpen, &in)
	r.execute(s, request, false)
	f := &opened{u, node, in.Unique, 0}
	f.writeAt(line("000002"), 0)
	r.takeOver()
	first := r.execute(r.serveAgain(newScript()), again(request), true)
	if got := errnoOf(first); got != 0 {
		t.Errorf("the reply is %v", got)
	}
	f.close()
	if got := u.mustOpen(".held", syscall.O_RDONLY).read(1000); got != line("000002") {
		t.Errorf("the file is now %q", got)
	}
}
