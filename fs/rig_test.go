package fs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"go.uber.org/goleak"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig calls the handlers of a file system as the kernel does, on a real queue.
// Tests of the whole with a kernel are in package integration.
type rig struct {
	t      testing.TB
	fs     *FS
	route  *queue.Route
	unique atomic.Uint64
}

func newRig(t testing.TB, opts Options) *rig {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	q, _, err := queue.Open(t.TempDir(), queue.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	route, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	opts.Route, opts.Logger = route, log
	opts.Format = ingest.NewSarracenia(ingest.SarraceniaOptions{})
	fs, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, fs: fs, route: route}
}

func (r *rig) header(uid uint32, node uint64) fuse.InHeader {
	return fuse.InHeader{
		Unique: r.unique.Add(1), NodeId: node,
		Caller: fuse.Caller{Owner: fuse.Owner{Uid: uid, Gid: uid}, Pid: uint32(os.Getpid())},
	}
}

// file is an open file as a process has it.
type file struct {
	r        *rig
	node, fh uint64
	uid      uint32
	flags    uint32
}

func (r *rig) create(uid uint32, name string, flags uint32) (*file, fuse.Status) {
	in := fuse.CreateIn{InHeader: r.header(uid, rootNode), Flags: flags | syscall.O_CREAT, Mode: 0o644}
	var out fuse.CreateOut
	st := r.fs.Create(nil, &in, name, &out)
	return &file{r, out.NodeId, out.Fh, uid, flags}, st
}

func (r *rig) mustCreate(uid uint32, name string, flags uint32) *file {
	r.t.Helper()
	f, st := r.create(uid, name, flags)
	if !st.Ok() {
		r.t.Fatalf("create %q: %v", name, st)
	}
	return f
}

func (r *rig) open(uid uint32, node uint64, flags uint32) (*file, fuse.Status) {
	in := fuse.OpenIn{InHeader: r.header(uid, node), Flags: flags}
	var out fuse.OpenOut
	st := r.fs.Open(nil, &in, &out)
	return &file{r, node, out.Fh, uid, flags}, st
}

func (r *rig) lookup(uid uint32, name string) (uint64, fuse.Status) {
	in := r.header(uid, rootNode)
	var out fuse.EntryOut
	st := r.fs.Lookup(nil, &in, name, &out)
	return out.NodeId, st
}

func (f *file) writeAt(data string, offset uint64) fuse.Status {
	in := fuse.WriteIn{InHeader: f.r.header(f.uid, f.node), Fh: f.fh, Offset: offset, Flags: f.flags}
	_, st := f.r.fs.Write(nil, &in, []byte(data))
	return st
}

func (f *file) truncate(size uint64) fuse.Status {
	in := fuse.SetAttrIn{}
	in.InHeader, in.Valid, in.Size, in.Fh = f.r.header(f.uid, f.node), fuse.FATTR_SIZE|fuse.FATTR_FH, size, f.fh
	var out fuse.AttrOut
	return f.r.fs.SetAttr(nil, &in, &out)
}

func (f *file) flush() fuse.Status {
	return f.r.fs.Flush(nil, &fuse.FlushIn{InHeader: f.r.header(f.uid, f.node), Fh: f.fh})
}

func (f *file) release() {
	f.r.fs.Release(nil, &fuse.ReleaseIn{InHeader: f.r.header(f.uid, f.node), Fh: f.fh})
}

func (f *file) close() {
	f.r.t.Helper()
	if st := f.flush(); !st.Ok() {
		f.r.t.Errorf("flush: %v", st)
	}
	f.release()
}

func (f *file) read(n int) string {
	in := fuse.ReadIn{InHeader: f.r.header(f.uid, f.node), Fh: f.fh}
	res, st := f.r.fs.Read(nil, &in, make([]byte, n))
	if !st.Ok() {
		f.r.t.Fatalf("read: %v", st)
	}
	b, _ := res.Bytes(nil)
	return string(b)
}

// line is a record whose path ends in name.
func line(name string) string {
	return fmt.Sprintf(`{"pubTime": "20261130T070000.000", "baseUrl": "http://h", "relPath": "d/%s"}`+"\n", name)
}

// bodies takes all messages of the route, in order.
func (r *rig) bodies() string {
	r.t.Helper()
	var b strings.Builder
	for {
		s, err := r.route.Stats()
		if err != nil {
			r.t.Fatal(err)
		}
		if s.Ready == 0 {
			return b.String()
		}
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
		leases, err := r.route.Lease(ctx, 100)
		cancel()
		if err != nil {
			r.t.Fatal(err)
		}
		for _, l := range leases {
			b.Write(l.Body)
		}
	}
}

func (r *rig) stats() queue.Stats {
	r.t.Helper()
	s, err := r.route.Stats()
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}
