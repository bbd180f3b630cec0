package fs

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// readFrom reads what is open in the status tree from an offset on.
func (f *opened) readFrom(offset uint64) string {
	f.t.Helper()
	text, st := f.readAt(128<<10, offset)
	if !st.Ok() {
		f.t.Fatalf("read from %d: %v", offset, st)
	}
	return text
}

// size is that of what is open, by its handle.
func (f *opened) size() uint64 {
	f.t.Helper()
	in := fuse.GetAttrIn{InHeader: f.header(f.node)}
	in.Flags_, in.Fh_ = fuse.FUSE_GETATTR_FH, f.fh
	var out fuse.AttrOut
	if st := f.fs.GetAttr(nil, &in, &out); !st.Ok() {
		f.t.Fatalf("getattr: %v", st)
	}
	return out.Size
}

// TestStatusTree_ReadAcrossTakeOver: G10, F14. Who has read a part of a file of
// .status when a process dies reads the rest of the same moment from the next one,
// also of a message that has gone meanwhile. What was kept for that goes with the
// handle.
func TestStatusTree_ReadAcrossTakeOver(t *testing.T) {
	moment := 0
	r := newRig(t, Options{Status: []StatusFile{{Name: "numbers", Content: func() []byte {
		moment++
		return []byte(strings.Repeat(fmt.Sprintf("moment %d\n", moment), 1000*moment))
	}}}})
	u := r.as(0)
	id := r.dead(2)[0]
	before := r.fs.table.Len()
	for _, path := range []string{"numbers", "routes/default/dead/" + id} {
		f, st := u.openNode(r.mustPath(path).NodeId, syscall.O_RDONLY)
		if !st.Ok() {
			t.Fatal(st)
		}
		whole := f.readFrom(0)
		if path != "numbers" {
			if st := r.remove("routes/default/dead", id); !st.Ok() {
				t.Fatal(st)
			}
		}
		for range 3 {
			r.takeOver()
			f.rig = r
			if got := f.readFrom(10); got != whole[10:] {
				t.Fatalf("%s: after the take-over it goes on with\n%.60s\nwant\n%.60s", path, got, whole[10:])
			}
			if got := f.size(); got != uint64(len(whole)) {
				t.Errorf("%s: %d bytes, were %d", path, got, len(whole))
			}
		}
		f.release()
		if got := r.fs.table.Len(); got != before {
			t.Errorf("%s: %d records after the release, were %d", path, got, before)
		}
	}
	if got := r.content("numbers"); got == "" || strings.HasPrefix(got, "moment 1\n") {
		t.Errorf("a new reader gets %.20q", got)
	}
}
