package fs

import (
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/ingest"
)

// TestFS_StoreDoesNotAnswer: requests on a file whose staging hangs are answered
// with EIO in time, those on other files work, and what was begun ends well.
func TestFS_StoreDoesNotAnswer(t *testing.T) {
	hang := make(chan struct{})
	real := ingest.NewSarracenia(ingest.SarraceniaOptions{})
	r := newRig(t, Options{
		StoreTimeout: 500 * time.Millisecond,
		Format: formatFunc(func(data []byte, at ingest.Position) ingest.Result {
			if string(data) == line("hangs") {
				<-hang
			}
			return real.Decode(data, at)
		}),
	})
	u := r.as(1)
	f := u.mustCreate("f")
	f.writeAt(line("hangs"), 0)
	stuck := func(what string, call func() fuse.Status) {
		t.Helper()
		began := time.Now()
		if st := call(); st != fuse.EIO {
			t.Errorf("%s: %v", what, st)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s took %s", what, took)
		}
	}
	stuck("flush", f.flush)
	stuck("write", func() fuse.Status { return f.writeAt("x", 0) })
	stuck("read", func() fuse.Status { return second(f.readAt(1, 0)) })
	stuck("truncate", func() fuse.Status { return f.truncate(0) })
	stuck("fsync", f.fsync)
	node, _ := u.lookup("f")
	if st := u.chmod(node, 0o600); !st.Ok() {
		t.Errorf("chmod: %v", st)
	}
	if st := u.rename("f", "g"); !st.Ok() {
		t.Errorf("rename: %v", st)
	}
	u.put("other", line("other"))
	r.wantBodies(line("other"))
	close(hang)
	r.until("unstuck", func() bool { return f.flush().Ok() })
	f.release()
	r.wantBodies(line("hangs"))
	if st := second(u.create("x", syscall.O_EXCL)); !st.Ok() {
		t.Error(st)
	}
}
