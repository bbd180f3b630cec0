package fs

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// TestStatusPages: a page is what its key says, for who may read the file, and is
// kept for as long as a handle is open; what is looked for and not opened takes
// no memory for long.
func TestStatusPages(t *testing.T) {
	made := 0
	r := newRig(t, Options{Status: []StatusFile{{
		Name: "export", Private: true, Content: func() []byte { return []byte("first") },
		Pages: func(key string) ([]byte, error) {
			made++
			if key == "none" {
				return nil, syscall.ENOENT
			}
			return []byte(strings.Repeat(key, 3)), nil
		},
	}}})
	if got := r.content("export") + r.content("export.a.b"); got != "firsta.ba.ba.b" {
		t.Errorf("they hold %q", got)
	}
	if _, st := r.path("export.none"); st != fuse.ENOENT {
		t.Errorf("a page that is not there: %v", st)
	}
	before := made
	in := r.as(1).header(statusNode)
	var out fuse.EntryOut
	if st := r.fs.Lookup(nil, &in, "export.a", &out); st != fuse.EACCES || made != before {
		t.Errorf("another user's lookup: %v, and %d pages were made", st, made-before)
	}
	f, st := r.as(0).openNode(r.mustPath("export.x").NodeId, syscall.O_RDONLY)
	if !st.Ok() {
		t.Fatal(st)
	}
	for i := range 1000 {
		r.mustPath(fmt.Sprint("export.", i))
	}
	if n := len(r.fs.tree.snapshots); n > maxPages+1 { // and that of the flat file
		t.Errorf("%d snapshots are kept", n)
	}
	if got := f.read(10); got != "xxx" {
		t.Errorf("the open page reads %q", got)
	}
	f.release()
	if n := len(r.fs.tree.opened); n != 0 {
		t.Errorf("%d handles are kept", n)
	}
}

// TestStatusPages_TakeOver: a page that was looked for before another process took
// over is not taken for the flat file, nor for another page; one that is open stays
// what it was.
func TestStatusPages_TakeOver(t *testing.T) {
	r := newRig(t, Options{Status: []StatusFile{{
		Name: "export", Content: func() []byte { return []byte("first") },
		Pages: func(key string) ([]byte, error) { return []byte("page " + key), nil },
	}}})
	open, st := r.as(0).openNode(r.mustPath("export.a").NodeId, syscall.O_RDONLY)
	if !st.Ok() {
		t.Fatal(st)
	}
	found := r.mustPath("export.b").NodeId
	r.takeOver()
	if _, st := r.as(0).openNode(found, syscall.O_RDONLY); st != fuse.Status(syscall.ESTALE) {
		t.Errorf("the page of the former process opens with %v", st)
	}
	if got := open.read(10); got != "page a" {
		t.Errorf("the open page reads %q", got)
	}
	if got := r.content("export.b"); got != "page b" {
		t.Errorf("the page reads %q when it is looked for again", got)
	}
	open.release()
	if n := len(r.fs.tree.opened) + len(r.fs.tree.snapshots); n != 0 {
		t.Errorf("%d snapshots are kept", n)
	}
}
