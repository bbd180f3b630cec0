package fs

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/shm"
)

// stuckDisk is a disk whose syncs take until it goes on.
type stuckDisk struct {
	gate  atomic.Pointer[chan struct{}]
	syncs atomic.Int64
}

var _ errorfs.Injector = (*stuckDisk)(nil)

func (d *stuckDisk) String() string { return "stuck disk" }

// MaybeError waits where a sync would.
func (d *stuckDisk) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		d.syncs.Add(1)
		if gate := d.gate.Load(); gate != nil {
			<-*gate
		}
	}
	return nil
}

// stop has syncs wait until the function that it returns is called.
func (d *stuckDisk) stop() (goOn func()) {
	gate := make(chan struct{})
	d.gate.Store(&gate)
	return func() {
		d.gate.Store(nil)
		close(gate)
	}
}

// onStuckDisk is a rig on such a disk.
func onStuckDisk(t *testing.T, opts Options) (*rig, *stuckDisk) {
	t.Helper()
	disk := &stuckDisk{}
	r := &rig{t: t, store: t.TempDir(), opts: opts, disk: errorfs.Wrap(vfs.Default, disk)}
	r.start()
	t.Cleanup(r.stop)
	return r, disk
}

func (f *opened) flushRequest() []byte {
	return encode(codeFlush, &fuse.FlushIn{InHeader: f.header(f.node), Fh: f.fh})
}

func (f *opened) releaseRequest() []byte {
	return encode(codeRelease, &fuse.ReleaseIn{InHeader: f.header(f.node), Fh: f.fh})
}

// TestServer_CloseSoon: the close of a small file takes no goroutine, and does all that
// the ordinary way does, with one sync.
func TestServer_CloseSoon(t *testing.T) {
	r, disk := onStuckDisk(t, Options{})
	c := r.serve()
	u := r.as(7)
	before := disk.syncs.Load()
	for i := range 10 {
		f := u.mustCreate(fmt.Sprint("f", i))
		f.writeAt(line(fmt.Sprint(i)), 0)
		for _, request := range [][]byte{f.flushRequest(), f.releaseRequest()} {
			if got := errnoOf(c.ask(t, request)); got != 0 {
				t.Fatalf("file %d: %v", i, got)
			}
		}
	}
	if n := serving(); n != 0 {
		t.Errorf("%d goroutines", n)
	}
	if got := disk.syncs.Load() - before; got != 10 {
		t.Errorf("%d syncs for 10 files", got)
	}
	if st := r.fs.Stats(); st.OpenFiles != 0 || st.IngestedFilesTotal != 10 || st.IngestedMessagesTotal != 10 {
		t.Errorf("%+v", st)
	}
	ops := r.fs.Operations()
	if ops["flush"].Count() != 10 || ops["release"].Count() != 10 {
		t.Errorf("counted %d and %d", ops["flush"].Count(), ops["release"].Count())
	}
	if held := r.fs.usage.held(); held != (holding{}) {
		t.Errorf("held %+v", held)
	}
	r.pass(2 * graceTime)
	for _, kind := range []shm.Kind{kindNode, kindHandle, kindFile, kindState} {
		_ = r.fs.table.Each(kind, func(id uint64, _ []byte) error {
			t.Errorf("the memory still has %d of kind %d", id, kind)
			return nil
		})
	}
	r.until("nothing in hand", func() bool { return len(r.fs.memory.InHand()) == 0 })
	r.wantBodies(numbered(10))
}

// TestServer_SoonReplaces: what was staged and has been written over is not published, and
// the rest of a line joins its beginning.
func TestServer_SoonReplaces(t *testing.T) {
	r := newRig(t, Options{})
	c := r.serve()
	u := r.as(7)
	for _, synced := range []string{line("a"), line("a")[:20]} {
		f := u.mustCreate("f")
		f.writeAt(synced, 0)
		if st := f.fsync(); !st.Ok() {
			t.Fatal(st)
		}
		f.writeAt(line("b"), 0)
		for _, request := range [][]byte{f.flushRequest(), f.releaseRequest()} {
			if got := errnoOf(c.ask(t, request)); got != 0 {
				t.Fatal(got)
			}
		}
		r.wantBodies(line("b"))
	}
}

func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text)) }

// numbered are the lines of so many files.
func numbered(files int) (all string) {
	for i := range files {
		all += line(fmt.Sprint(i))
	}
	return all
}

// TestServer_SoonOnStuckDisk: however many closes wait for the disk, other requests are
// answered, as many readers are left as there are processors, and the closes are
// answered with EIO in time, or else when the disk goes on.
func TestServer_SoonOnStuckDisk(t *testing.T) {
	for _, patient := range []bool{true, false} {
		t.Run(fmt.Sprintf("patient=%v", patient), func(t *testing.T) {
			timeout := time.Hour
			if !patient {
				timeout = time.Millisecond
			}
			r, disk := onStuckDisk(t, Options{StoreTimeout: timeout})
			c := r.serve()
			u := r.as(7)
			goOn := disk.stop()
			const files = 60
			var replies []chan []byte
			var all []*opened
			for i := range files {
				f := u.mustCreate(fmt.Sprint("f", i))
				f.writeAt(line(fmt.Sprint(i)), 0)
				replies, all = append(replies, c.send(t, f.flushRequest())), append(all, f)
			}
			in := u.header(rootNode)
			if got := errnoOf(c.ask(t, encode(codeLookup, &in, "nothing\x00"))); got != syscall.ENOENT {
				t.Errorf("lookup: %v", got)
			}
			waiting := func() (n int) {
				for _, q := range r.fs.memory.InHand() {
					if q.Waits {
						n++
					}
				}
				return n
			}
			r.until("all wait", func() bool { return waiting() == files })
			if n := serving(); n != 0 {
				t.Errorf("%d goroutines", n)
			}
			want := syscall.Errno(0)
			if !patient {
				time.Sleep(2 * timeout)
				r.fs.tendNames()
				want = syscall.EIO
			} else {
				r.fs.tendNames()
				goOn()
			}
			for i, reply := range replies {
				if got := errnoOf(await(t, reply)); got != want {
					t.Errorf("flush %d: %v, want %v", i, got, want)
				}
			}
			r.until("nothing in hand", func() bool { return len(r.fs.memory.InHand()) == 0 })
			if !patient {
				goOn()
			}
			// What was begun ends well in any case.
			for _, f := range all {
				if got := errnoOf(c.ask(t, f.releaseRequest())); got != 0 {
					t.Errorf("release: %v", got)
				}
			}
			r.until("all are messages", func() bool { return r.fs.Stats().IngestedMessagesTotal == files })
			// Readers are not as orderly as one process with one file after the other.
			if got, want := sortedLines(r.bodies()), sortedLines(numbered(files)); !slices.Equal(got, want) {
				t.Errorf("published %q, want %q", got, want)
			}
		})
	}
}
