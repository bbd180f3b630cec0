package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The sizes of the disks. A store needs little more than the log of one memory
// table of 16 MiB. One that has filled the disk by itself needs as much again
// to come back, since it writes the memory table out when it opens.
const (
	smallDisk  = "24m"
	largerDisk = "64m"
)

// TestQueue_FullDisk fills a real disk under the queue at each moment. Writers
// get ENOSPC, nothing that was stored is lost, and when there is room again all
// goes on by itself. (D18, D19, D21)
func TestQueue_FullDisk(t *testing.T) {
	for _, disk := range []string{"tmpfs", "ext4"} {
		for name, run := range map[string]func(*fullDisk){
			"before opening":     (*fullDisk).beforeOpen,
			"before a put":       (*fullDisk).beforePut,
			"put and commit":     (*fullDisk).beforeCommit,
			"lease and settle":   (*fullDisk).whileLeasing,
			"gradually":          (*fullDisk).gradually,
			"by our own appends": (*fullDisk).byOurselves,
		} {
			// Without a floor the disk gets really full; with it the queue refuses
			// before that, and has its ballast.
			for floor, limits := range map[string]Limits{"no floor": {FreeFloor: 1, Ballast: 1}, "floor": {}} {
				t.Run(disk+"/"+name+"/"+floor, func(t *testing.T) {
					t.Parallel()
					size := smallDisk
					if name == "by our own appends" {
						size = largerDisk
					}
					d := &fullDisk{t: t, dir: mountDisk(t, disk, size), book: newLedger(), limits: limits}
					d.open()
					run(d)
					d.goesOn()
				})
			}
		}
	}
}

// mountDisk mounts a new file system.
func mountDisk(t *testing.T, kind, size string) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-t", "tmpfs", "-o", "size=" + size, "tmpfs", dir}
	if kind == "ext4" {
		image := filepath.Join(t.TempDir(), "image")
		if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", image, size).CombinedOutput(); err != nil {
			t.Skipf("no ext4 here: mkfs: %v: %s", err, out)
		}
		args = []string{"-o", "loop", image, dir}
	}
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		if kind == "ext4" {
			t.Skipf("no loop devices here: mount: %v: %s", err, out)
		}
		t.Fatalf("this test must be able to mount a tmpfs (root, CAP_SYS_ADMIN): %v: %s", err, out)
	}
	t.Cleanup(func() {
		// A process that another test is just starting has our files for a moment.
		err := syscall.EBUSY
		for deadline := time.Now().Add(bound); err == syscall.EBUSY && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
			err, _ = syscall.Unmount(dir, 0).(syscall.Errno)
		}
		if err != 0 {
			t.Errorf("unmount, something is still open: %v", err)
			_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		}
	})
	return dir
}

// fullDisk is a queue on a small disk.
type fullDisk struct {
	limits Limits
	t      *testing.T
	dir    string
	book   *ledger
	q      *Queue
	r      *Route
	stage  *Stage // open, with messages in it
}

// open opens the queue with something in each state.
func (d *fullDisk) open() {
	d.t.Helper()
	d.reopen()
	for range 3 {
		if err := d.append(3000); err != nil {
			d.t.Fatal(err)
		}
	}
	d.stage = d.r.NewStage(NewFileID(), StageInfo{})
	ms := messages(d.stage.File(), 2)
	d.book.know(messageIDs(ms)...)
	if err := d.stage.Put(0, ms); err != nil {
		d.t.Fatal(err)
	}
	d.book.store(messageIDs(ms)...)
}

func (d *fullDisk) reopen() {
	d.t.Helper()
	opts := d.options()
	var stages []*Stage
	err := within(d.t, "open", func() (err error) {
		d.q, stages, err = Open(filepath.Join(d.dir, "store"), opts)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	if d.r, err = d.q.Route("a"); err != nil {
		d.t.Fatal(err)
	}
	if len(stages) == 1 {
		d.stage = stages[0]
	}
}

// append stores a message of the given size that cannot be compressed.
func (d *fullDisk) append(size int) error {
	ms := messages(NewFileID(), 1)
	ms[0].Body = make([]byte, size)
	rand.Read(ms[0].Body)
	d.book.know(ms[0].ID)
	err := within(d.t, "append", func() error { return d.r.Append(ms) })
	if err == nil {
		d.book.store(ms[0].ID)
	}
	return err
}

// appendUntilFull appends until that fails, which it must as it should.
func (d *fullDisk) appendUntilFull(size int) {
	d.t.Helper()
	for range 64 << 20 / size {
		if err := d.append(size); err != nil {
			d.isFull(err)
			return
		}
	}
	d.t.Fatal("the disk does not get full")
}

func (d *fullDisk) options() Options {
	opts := testOptions(nil)
	opts.Limits = d.limits
	return opts
}

func (d *fullDisk) isFull(err error) {
	d.t.Helper()
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Errorf("on a full disk: %v, want ENOSPC", err)
	}
}

// fill takes all the space but keep bytes.
func (d *fullDisk) fill(keep int64) {
	d.t.Helper()
	hog, err := os.Create(filepath.Join(d.dir, "hog"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer hog.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = hog.Write(make([]byte, size))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatal(err)
	}
	if info, err := hog.Stat(); err == nil && keep > 0 {
		if err := hog.Truncate(info.Size() - keep); err != nil {
			d.t.Fatal(err)
		}
	}
}

// free gives the space back.
func (d *fullDisk) free() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.dir, "hog")); err != nil {
		d.t.Fatal(err)
	}
}

// beforeOpen: an opening on a full disk succeeds or says why not, and leaves
// the store as it is.
func (d *fullDisk) beforeOpen() {
	d.close()
	d.fill(0)
	err := within(d.t, "open on a full disk", func() (err error) {
		d.q, _, err = Open(filepath.Join(d.dir, "store"), d.options())
		return err
	})
	if err == nil {
		d.close()
	} else if !errors.Is(err, syscall.ENOSPC) {
		d.t.Errorf("open on a full disk: %v, want ENOSPC", err)
	}
	d.free()
	d.reopen()
}

// beforePut: the disk is full all at once.
func (d *fullDisk) beforePut() {
	d.fill(0)
	d.appendUntilFull(100_000)
	err := d.stage.Put(2, messages(d.stage.File(), 3)[2:])
	d.book.know(d.stage.File().MessageID(3))
	d.isFull(err)
	d.free()
}

// beforeCommit: what was put before the disk was full can be committed.
func (d *fullDisk) beforeCommit() {
	d.fill(0)
	d.appendUntilFull(100_000)
	if err := within(d.t, "commit", d.stage.Commit); err != nil {
		d.t.Errorf("commit on a full disk: %v", err)
	}
	d.stage = nil
	d.free()
}

// whileLeasing: settling fails or succeeds, and Lease waits.
func (d *fullDisk) whileLeasing() {
	leases := leaseAll(d.t, d.r, 3)
	d.fill(0)
	d.appendUntilFull(100_000)
	d.book.release(leases[0].ID)
	for _, settle := range []func() error{
		func() error { return d.r.Ack(leases[0]) },
		func() error { return d.r.Nack(leases[1], time.Now()) },
		func() error { return d.r.DeadLetter(leases[2], "too-large") },
	} {
		if err := within(d.t, "settle", settle); err != nil && !errors.Is(err, ErrNotLeased) {
			d.isFull(err)
		}
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.r.Lease(ctx, 10); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		d.t.Errorf("lease on a full disk: %v", err)
	}
	d.free()
}

// gradually: somebody else writes while we do, and leaves a little.
func (d *fullDisk) gradually() {
	d.fill(2 << 20)
	hog, err := os.OpenFile(filepath.Join(d.dir, "hog"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer hog.Close()
	for range 10_000 {
		hog.Write(make([]byte, 16<<10))
		if err := d.append(10_000); err != nil {
			d.isFull(err)
			d.free()
			return
		}
	}
	d.t.Error("the disk does not get full")
}

// byOurselves: the queue itself fills the disk, but for a little that another
// gives back.
func (d *fullDisk) byOurselves() {
	hog, err := os.Create(filepath.Join(d.dir, "hog"))
	if err == nil {
		_, err = hog.Write(make([]byte, 24<<20))
		hog.Close()
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.appendUntilFull(200_000)
	d.free()
}

// goesOn checks that the queue resumes with all that it has promised, delivers
// it and leaves nothing behind.
func (d *fullDisk) goesOn() {
	d.t.Helper()
	until(d.t, "writing resumes", func() bool {
		err := d.append(1000)
		if err != nil {
			d.isFull(err)
		}
		return err == nil
	})
	if err := d.book.check(d.q); err != nil {
		d.t.Fatal(err)
	}
	if d.stage != nil {
		commit(d.t, d.stage)
	}
	until(d.t, "all is delivered", func() bool {
		s, err := d.r.Stats()
		if err != nil {
			d.t.Fatal(err)
		}
		if s.Ready+s.Delayed == 0 {
			return true
		}
		leases := leaseAll(d.t, d.r, 1)
		d.book.release(leases[0].ID)
		if err := d.r.Ack(leases...); err != nil {
			d.t.Fatal(err)
		}
		return false
	})
	if err := d.append(1000); err != nil {
		d.t.Errorf("append after the drain: %v", err)
	}
	d.close()
	d.reopen()
	if err := d.book.check(d.q); err != nil {
		d.t.Error(err)
	}
	d.noLitter()
	d.close()
}

func (d *fullDisk) close() {
	d.t.Helper()
	if err := within(d.t, "close", d.q.Close); err != nil {
		d.t.Errorf("close: %v", err)
	}
}

// noLitter waits until the store has nothing but what the database lives on.
func (d *fullDisk) noLitter() {
	d.t.Helper()
	left := ""
	for deadline := time.Now().Add(bound); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if left = d.litter(); left == "" {
			return
		}
	}
	d.t.Errorf("left behind: %s", left)
}

func (d *fullDisk) litter() string {
	live := map[string]bool{formatFile: true, lockFile: true, databaseDir: true, ballastFile: true}
	levels, err := d.q.engine.db.SSTables()
	if err != nil {
		return err.Error()
	}
	for _, level := range levels {
		for _, table := range level {
			live[table.BackingSSTNum.String()+".sst"] = true
		}
	}
	var left []string
	count := map[string]int{"MANIFEST": -1} // Pebble keeps the one before
	for _, dir := range []string{"store", "store/" + databaseDir} {
		entries, err := os.ReadDir(filepath.Join(d.dir, dir))
		if err != nil {
			return err.Error()
		}
		for _, e := range entries {
			kind, _, _ := strings.Cut(e.Name(), "-")
			if strings.HasPrefix(e.Name(), "marker.") {
				kind = strings.Join(strings.Split(e.Name(), ".")[:2], ".")
			} else if filepath.Ext(e.Name()) == ".log" {
				kind = "log"
			}
			known := kind == "MANIFEST" || kind == "OPTIONS" || kind == "log" || strings.HasPrefix(kind, "marker.")
			if count[kind]++; !live[e.Name()] && (!known || count[kind] > 1) {
				left = append(left, e.Name())
			}
		}
	}
	return strings.Join(left, " ")
}
