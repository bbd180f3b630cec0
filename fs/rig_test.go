package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"spoolfs/fs/ingest"
	"spoolfs/fs/shm"
	"spoolfs/queue"
)

func TestMain(m *testing.M) {
	for env, run := range map[string]func(string) error{writerEnv: writeFiles, workerEnv: runWorker, userEnv: runUser} {
		if args := os.Getenv(env); args != "" {
			if err := run(args); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

// rig calls the handlers of a file system as the kernel does, on a real queue.
// Tests with a kernel are in mount_test.go and in package integration.
type rig struct {
	t      testing.TB
	fs     *FS
	queue  *queue.Queue
	route  *queue.Route
	store  string
	memory *shm.Memory // that outlives a take-over
	opts   Options
	disk   vfs.FS       // of the store; nil is the real one
	clock  atomic.Int64 // added to the time of day, or to epoch
	epoch  time.Time    // if not zero, time stands still but for clock
	unique atomic.Uint64

	// routes gives those besides that of the root, or is nil.
	routes func(*queue.Queue) []RouteOptions
}

func newRig(t testing.TB, opts Options) *rig {
	t.Helper()
	r := &rig{t: t, store: t.TempDir(), opts: opts}
	r.start()
	t.Cleanup(r.stop)
	return r
}

// start opens the store and makes a file system, as a new process does.
func (r *rig) start() {
	r.t.Helper()
	if err := r.tryStart(); err != nil {
		r.t.Fatal(err)
	}
}

// tryStart is start. After an error memory and queue are there all the same.
func (r *rig) tryStart() error {
	opts := r.opts
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	q, stages, err := queue.Open(r.store, queue.Options{Logger: opts.Logger, FS: r.disk})
	if err != nil {
		return err
	}
	r.queue = q
	if r.route, err = q.Route("default"); err != nil {
		return err
	}
	opts.Route = r.route
	if r.routes != nil {
		opts.Routes = r.routes(q)
	}
	if r.memory == nil {
		if r.memory, err = shm.Create(shm.Options{}); err != nil {
			return err
		}
	}
	opts.Memory = r.memory
	if opts.Format == nil {
		opts.Format = ingest.NewSarracenia(ingest.SarraceniaOptions{})
	}
	if r.fs, err = New(opts); err != nil {
		return err
	}
	r.fs.processOf = func(thread uint32) process { return process(thread) }
	r.fs.now = r.now
	return r.fs.Recover(stages)
}

func (r *rig) now() time.Time {
	now := r.epoch
	if now.IsZero() {
		now = time.Now()
	}
	return now.Add(time.Duration(r.clock.Load()))
}

func (r *rig) stop() {
	r.t.Helper()
	if err := errors.Join(r.queue.Close(), r.memory.Close()); err != nil {
		r.t.Error(err)
	}
	r.memory = nil
}

// restart is a crash of the process: nothing is told to anybody.
func (r *rig) restart() {
	r.t.Helper()
	r.stop()
	r.start()
}

// takeOver has another process go on, after the death of the one that serves.
func (r *rig) takeOver() {
	r.t.Helper()
	if err := r.queue.Close(); err != nil {
		r.t.Fatal(err)
	}
	fd, err := unix.Dup(r.memory.FD())
	if err != nil {
		r.t.Fatal(err)
	}
	old := r.memory
	if r.memory, err = shm.Open(fd); err != nil {
		r.t.Fatal(err)
	}
	r.start()
	if err := old.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.fs.tookOver = true
}

// pass lets time pass, and does what is due then.
func (r *rig) pass(d time.Duration) {
	r.clock.Add(int64(d))
	r.fs.tendNames()
	r.fs.tendFiles()
}

// user calls as a process of a user, in a directory.
type user struct {
	*rig
	uid, gid, pid uint32
	dir           uint64
}

// as returns a user with one process, whose number is that of the user.
func (r *rig) as(uid uint32) user { return user{r, uid, uid, 1000 + uid, rootNode} }

// process returns another process of the user.
func (u user) process(pid uint32) user {
	u.pid = pid
	return u
}

// in returns the user in another directory.
func (u user) in(dir uint64) user {
	u.dir = dir
	return u
}

func (u user) caller() fuse.Caller {
	return fuse.Caller{Owner: fuse.Owner{Uid: u.uid, Gid: u.gid}, Pid: u.pid}
}

func (u user) header(node uint64) fuse.InHeader {
	return fuse.InHeader{Unique: u.unique.Add(1), NodeId: node, Caller: u.caller()}
}

// opened is an open file description as a process has it.
type opened struct {
	user
	node, fh uint64
	flags    uint32
}

// create opens a new name for writing.
func (u user) create(name string, flags uint32) (*opened, fuse.Status) {
	in := fuse.CreateIn{InHeader: u.header(u.dir), Flags: flags | syscall.O_CREAT, Mode: 0o644}
	var out fuse.CreateOut
	st := u.fs.Create(nil, &in, name, &out)
	return &opened{u, out.NodeId, out.Fh, flags}, st
}

func (u user) mustCreate(name string) *opened {
	u.t.Helper()
	f, st := u.create(name, 0)
	if !st.Ok() {
		u.t.Fatalf("create %q: %v", name, st)
	}
	return f
}

// openNode opens what the user got as a node.
func (u user) openNode(node uint64, flags uint32) (*opened, fuse.Status) {
	in := fuse.OpenIn{InHeader: u.header(node), Flags: flags}
	var out fuse.OpenOut
	st := u.fs.Open(nil, &in, &out)
	return &opened{u, node, out.Fh, flags}, st
}

// open is open(2): it makes the name if it is not there and may be made.
func (u user) open(name string, flags uint32) (*opened, fuse.Status) {
	node, st := u.lookup(name)
	switch {
	case st.Ok() && flags&syscall.O_EXCL != 0:
		return nil, fuse.Status(syscall.EEXIST)
	case st.Ok():
		return u.openNode(node, flags&^syscall.O_CREAT)
	case st == fuse.ENOENT && flags&syscall.O_CREAT != 0:
		return u.create(name, flags)
	}
	return nil, st
}

func (u user) mustOpen(name string, flags uint32) *opened {
	u.t.Helper()
	f, st := u.open(name, flags)
	if !st.Ok() {
		u.t.Fatalf("open %q: %v", name, st)
	}
	return f
}

// put writes a file.
func (u user) put(name, content string) {
	u.t.Helper()
	f := u.mustOpen(name, syscall.O_CREAT|syscall.O_WRONLY|syscall.O_TRUNC)
	f.writeAt(content, 0)
	f.close()
}

func (u user) lookup(name string) (uint64, fuse.Status) {
	node, _, st := u.stat(name)
	return node, st
}

func (u user) stat(name string) (uint64, fuse.Attr, fuse.Status) {
	in := u.header(u.dir)
	var out fuse.EntryOut
	st := u.fs.Lookup(nil, &in, name, &out)
	return out.NodeId, out.Attr, st
}

func (u user) unlink(name string) fuse.Status {
	in := u.header(u.dir)
	return u.fs.Unlink(nil, &in, name)
}

func (u user) rename(from, to string) fuse.Status { return u.move(from, u.dir, to, 0) }

func (u user) move(from string, dir uint64, to string, flags uint32) fuse.Status {
	return u.fs.Rename(nil, &fuse.RenameIn{InHeader: u.header(u.dir), Newdir: dir, Flags: flags}, from, to)
}

func (u user) mkdir(name string, mode uint32) (uint64, fuse.Status) {
	var out fuse.EntryOut
	st := u.fs.Mkdir(nil, &fuse.MkdirIn{InHeader: u.header(u.dir), Mode: mode}, name, &out)
	return out.NodeId, st
}

func (u user) mustMkdir(name string, mode uint32) user {
	u.t.Helper()
	node, st := u.mkdir(name, mode)
	if !st.Ok() {
		u.t.Fatalf("mkdir %q: %v", name, st)
	}
	return u.in(node)
}

func (u user) rmdir(name string) fuse.Status {
	in := u.header(u.dir)
	return u.fs.Rmdir(nil, &in, name)
}

// setAttr changes what set fills in.
func (u user) setAttr(node uint64, set func(*fuse.SetAttrIn)) fuse.Status {
	in := fuse.SetAttrIn{}
	in.InHeader = u.header(node)
	set(&in)
	return u.fs.SetAttr(nil, &in, new(fuse.AttrOut))
}

func (u user) chmod(node uint64, mode uint32) fuse.Status {
	return u.setAttr(node, func(in *fuse.SetAttrIn) { in.Valid, in.Mode = fuse.FATTR_MODE, mode })
}

// list is what the user sees in the directory, sorted.
func (u user) list() ([]string, fuse.Status) {
	in := fuse.OpenIn{InHeader: u.header(u.dir)}
	var out fuse.OpenOut
	if st := u.fs.OpenDir(nil, &in, &out); !st.Ok() {
		return nil, st
	}
	defer u.fs.ReleaseDir(&fuse.ReleaseIn{InHeader: u.header(u.dir), Fh: out.Fh})
	u.fs.mu.Lock()
	defer u.fs.mu.Unlock()
	var names []string
	for _, e := range u.fs.listings[out.Fh].entries {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names, fuse.OK
}

func (f *opened) writeAt(data string, offset uint64) fuse.Status {
	in := fuse.WriteIn{InHeader: f.header(f.node), Fh: f.fh, Offset: offset, Flags: f.flags}
	_, st := f.fs.Write(nil, &in, []byte(data))
	return st
}

func (f *opened) truncate(size uint64) fuse.Status {
	return f.setAttr(f.node, func(in *fuse.SetAttrIn) {
		in.Valid, in.Size, in.Fh = fuse.FATTR_SIZE|fuse.FATTR_FH, size, f.fh
	})
}

func (f *opened) flush() fuse.Status {
	return f.fs.Flush(nil, &fuse.FlushIn{InHeader: f.header(f.node), Fh: f.fh})
}

func (f *opened) fsync() fuse.Status {
	return f.fs.Fsync(nil, &fuse.FsyncIn{InHeader: f.header(f.node), Fh: f.fh})
}

func (f *opened) release() {
	f.fs.Release(nil, &fuse.ReleaseIn{InHeader: f.header(f.node), Fh: f.fh})
}

func (f *opened) close() {
	f.t.Helper()
	if st := f.flush(); !st.Ok() {
		f.t.Errorf("flush: %v", st)
	}
	f.release()
}

func (f *opened) readAt(n int, offset uint64) (string, fuse.Status) {
	in := fuse.ReadIn{InHeader: f.header(f.node), Fh: f.fh, Offset: offset}
	res, st := f.fs.Read(nil, &in, make([]byte, n))
	if !st.Ok() {
		return "", st
	}
	b, _ := res.Bytes(nil)
	return string(b), st
}

func (f *opened) read(n int) string {
	f.t.Helper()
	text, st := f.readAt(n, 0)
	if !st.Ok() {
		f.t.Fatalf("read: %v", st)
	}
	return text
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
		if err := r.route.Ack(leases...); err != nil {
			r.t.Fatal(err)
		}
	}
}

// wantBodies checks what is published, and that nothing else is there.
func (r *rig) wantBodies(want string) {
	r.t.Helper()
	if got := r.bodies(); got != want {
		r.t.Errorf("published\n%swant\n%s", got, want)
	}
}

// partials lists what was set aside, as file, reason and body.
func (r *rig) partials() []string {
	r.t.Helper()
	var list []string
	for e, err := range r.route.Entries(queue.Partial, queue.Place{}) {
		if err != nil {
			r.t.Fatal(err)
		}
		m := e.Message
		list = append(list, fmt.Sprintf("%s %d %s %q", m.File, m.UID, m.Reason, m.Body))
	}
	return list
}

func (r *rig) stats() queue.Stats {
	r.t.Helper()
	s, err := r.route.Stats()
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (u user) chown(node uint64, uid uint32) fuse.Status {
	return u.setAttr(node, func(in *fuse.SetAttrIn) { in.Valid, in.Owner.Uid = fuse.FATTR_UID, uid })
}

func (u user) chgrp(node uint64, gid uint32) fuse.Status {
	return u.setAttr(node, func(in *fuse.SetAttrIn) { in.Valid, in.Owner.Gid = fuse.FATTR_GID, gid })
}

func (u user) access(node uint64, mask uint32) fuse.Status {
	return u.fs.Access(nil, &fuse.AccessIn{InHeader: u.header(node), Mask: mask})
}

// setFormat has the root's route decode otherwise.
func setFormat(fs *FS, format ingest.Format) {
	opts := *fs.root.route.tuned.Load()
	opts.Format = format
	fs.root.route.tuned.Store(&opts)
}
