package fs

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"spoolfs/fs/shm"
)

// damage writes to a memory, as nothing of ours would.
type damage struct {
	t    *testing.T
	fd   int
	r    *rand.Rand
	live []int64 // where a number of a record is that is not 0
}

const (
	slotsStart     = 4096
	heapAt, sizeAt = 32, 40 // in the header, see package shm
	chunkBytes     = 64 << 10
)

func newDamage(t *testing.T, m *shm.Memory, r *rand.Rand) *damage {
	d := &damage{t: t, fd: m.FD(), r: r}
	heap, size := d.number(heapAt), d.number(sizeAt)
	chunks := (size - heap) / chunkBytes
	kinds := make([]byte, 64)
	d.read(kinds, heap)
	for i, kind := range kinds {
		if kind == 0 {
			continue
		}
		b := make([]byte, chunkBytes)
		at := heap + (chunks+chunkBytes-1)/chunkBytes*chunkBytes + int64(i)*chunkBytes
		d.read(b, at)
		for n := 0; n < len(b); n += 8 {
			if binary.LittleEndian.Uint64(b[n:]) != 0 {
				d.live = append(d.live, at+int64(n))
			}
		}
	}
	if len(d.live) == 0 {
		t.Fatal("there are no records")
	}
	return d
}

func (d *damage) read(b []byte, at int64) {
	if n, err := unix.Pread(d.fd, b, at); n < len(b) || err != nil {
		d.t.Fatal(n, err)
	}
}

func (d *damage) number(at int64) int64 {
	var b [8]byte
	d.read(b[:], at)
	return int64(binary.LittleEndian.Uint64(b[:]))
}

func (d *damage) write(b []byte, at int64) {
	if n, err := unix.Pwrite(d.fd, b, at); n < len(b) || err != nil {
		d.t.Fatal(n, err)
	}
}

// somewhere damages a record, the counts in the header, the kinds of chunks, or a
// slot.
func (d *damage) somewhere() {
	at := d.live[d.r.IntN(len(d.live))] + d.r.Int64N(8)
	switch d.r.IntN(8) {
	case 0:
		at = 56 + d.r.Int64N(40)
	case 1:
		at = d.number(heapAt) + d.r.Int64N(8)
	case 2:
		at = slotsStart + 128*d.r.Int64N(4) + d.r.Int64N(80)
	}
	b := []byte{byte(d.r.IntN(256))}
	if d.r.IntN(4) == 0 {
		at, b = at&^7, make([]byte, 8)
	}
	d.write(b, at)
}

// TestTakeOver_Damaged: a memory that makes no sense is refused as a whole, or what
// cannot be understood of it is gone, and using it gives an error or succeeds.
// Nothing panics or hangs. SPOOLFS_CHAOS=1 damages 3,000.
func TestTakeOver_Damaged(t *testing.T) {
	rounds, seed := 40, uint64(1)
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		rounds, seed = 3000, rand.Uint64()
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t, Options{})
	files := openAllWays(r)
	refused := 0
	for range rounds {
		dead, err := r.freeze()
		if err != nil {
			t.Fatal(err)
		}
		d := newDamage(t, dead.memory, random)
		for range 1 + random.IntN(3) {
			d.somewhere()
		}
		if !useDamaged(t, dead, files) {
			refused++
		}
		if err := os.RemoveAll(dead.store); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d refused", refused, rounds)
	if refused == 0 || refused == rounds {
		t.Errorf("%d of %d memories were refused", refused, rounds)
	}
}

// openAllWays has files open in each state there is.
func openAllWays(r *rig) []*opened {
	u := r.as(7)
	dir := u.mustMkdir("d", 0o755).mustMkdir("e", 0o700)
	var files []*opened
	for _, name := range []string{"fresh", "written", "flushed", ".held", ".renamed", "gone"} {
		for _, at := range []user{u, dir} {
			f := at.mustCreate(name)
			files = append(files, f)
			if name == "fresh" {
				continue
			}
			f.writeAt(line("000001")+line("000002"), 0)
			if name != "written" {
				f.flush()
			}
			f.writeAt(line("000003"), uint64(len(line("000001")+line("000002"))))
		}
	}
	u.rename(".renamed", "published")
	u.unlink("gone")
	u.put(".closed", line("000004"))
	s := r.serveAgain(newScript())
	for _, f := range files[:4] { // are in hand
		in := fuse.WriteIn{InHeader: f.header(f.node), Fh: f.fh, Size: uint32(len(line("000007")))}
		r.execute(s, encode(codeWrite, &in, line("000007")), false)
	}
	r.fs.server.Store(nil)
	return append(files, u.mustOpen("written", syscall.O_RDONLY))
}

// useDamaged goes on with what a process has left, and reports whether it can.
func useDamaged(t *testing.T, dead moment, files []*opened) bool {
	t.Helper()
	r := &rig{t: t, memory: dead.memory, store: dead.store}
	defer r.stop()
	if err := r.tryStart(); err != nil {
		if !errors.Is(err, shm.ErrDamaged) && !errors.Is(err, shm.ErrLayout) {
			t.Errorf("refused with %v", err)
		}
		return false
	}
	r.unique.Store(1 << 20)
	if err := r.serveAgain(newScript()).takeUp(); err != nil {
		t.Error(err)
	}
	for _, f := range files {
		f := *f
		f.rig = r
		f.writeAt(line("000005"), 0)
		f.readAt(4096, 0)
		f.truncate(uint64(len(line("000001"))))
		f.flush()
		f.release()
	}
	u := r.as(7)
	u.list()
	u.put("another", line("000006"))
	r.fs.tendNames()
	r.fs.tendFiles()
	return true
}

// TestTakeOver_DamagedSlot: a request that makes no sense in its slot is answered
// with an error, where the kernel does not send it again: nobody hangs.
func TestTakeOver_DamagedSlot(t *testing.T) {
	r := newRig(t, Options{})
	s := r.serveAgain(newScript())
	f := r.as(7).mustCreate("f")
	in := fuse.FlushIn{InHeader: f.header(f.node), Fh: f.fh}
	r.execute(s, encode(codeFlush, &in), false)
	var d damage
	d.t, d.fd = t, r.memory.FD()
	const lengthAt = 40
	d.write([]byte{7}, slotsStart+lengthAt)
	r.takeOver()
	c := newScript()
	reply := make(chan []byte, 1)
	c.replies[in.Unique] = reply
	if err := r.serveAgain(c).takeUp(); err != nil {
		t.Fatal(err)
	}
	if got := errnoOf(await(t, reply)); got != syscall.EIO {
		t.Errorf("the reply is %v", got)
	}
}

// TestTakeOver_OtherStore: what is open is not taken over with a store that does
// not have its stages. When nothing is open, any store will do.
func TestTakeOver_OtherStore(t *testing.T) {
	r := newRig(t, Options{Store: "one"})
	r.as(7).put("closed", line("000001"))
	r.opts.Store = "two"
	r.takeOver()
	f := r.as(7).mustCreate("open")
	f.writeAt(line("000002"), 0)
	f.flush()
	r.opts.Store = "three"
	if err := r.queue.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.tryStart(); !errors.Is(err, shm.ErrOtherStore) {
		t.Errorf("with another store: %v", err)
	}
	r.opts.Store = "two"
	r.takeOver()
	f.close()
	r.wantBodies(line("000001") + line("000002"))
}
