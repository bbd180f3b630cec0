package fs

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/queue"
)

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

// TestStatusListing_Errors: an error is told once there is nothing else to tell,
// and after it nothing is left out or listed twice.
func TestStatusListing_Errors(t *testing.T) {
	for range 50 {
		var all []string
		d := &statusListing{begin: func() pager {
			i := 0
			return func(uint64) ([]fuse.DirEntry, error) {
				var page []fuse.DirEntry
				for ; i < 30 && len(page) < 4; i++ {
					page = append(page, fuse.DirEntry{Name: fmt.Sprint(i)})
				}
				if rand.N(10) == 0 {
					return nil, syscall.EIO // the page is lost
				}
				return page, nil
			}
		}}
		d.rewind()
		cookie := uint64(0)
		for ended := false; !ended; {
			n := 0
			err := d.read(&fuse.ReadIn{Offset: cookie}, func(e fuse.DirEntry) bool {
				if n++; n > 5 {
					return false
				}
				all, cookie = append(all, e.Name), e.Off
				return true
			})
			ended = err == nil && n == 0
		}
		if len(all) != 32 || all[2] != "0" || all[31] != "29" {
			t.Fatalf("listed %q", all)
		}
	}
}
