package queue

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// badSectorFS cannot read some bytes of the tables that a database has when bad is
// set. They are in damaged- when that was set aside.
type badSectorFS struct {
	vfs.FS
	bad   atomic.Bool
	from  int64 // the sectors [from, to) of each table
	to    int64
	reads atomic.Int64 // that have failed
}

func (b *badSectorFS) Unwrap() vfs.FS { return b.FS }

func (b *badSectorFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := b.FS.Open(name, opts...)
	if err != nil || !strings.HasSuffix(name, ".sst") || strings.Contains(name, salvageDir) {
		return f, err
	}
	if names, _ := b.List("store"); !strings.Contains(name, damagedPrefix) && strings.Contains(fmt.Sprint(names), damagedPrefix) {
		return f, nil
	}
	return &badSectorFile{f, b}, nil
}

type badSectorFile struct {
	vfs.File
	fs *badSectorFS
}

func (f *badSectorFile) ReadAt(p []byte, offset int64) (int, error) {
	if f.fs.bad.Load() && offset < f.fs.to && offset+int64(len(p)) > f.fs.from {
		f.fs.reads.Add(1)
		return 0, fmt.Errorf("read: %w", syscall.EIO)
	}
	return f.File.ReadAt(p, offset)
}

// TestQueue_BadSector: a sector that cannot be read any more costs the messages of
// its block, and nothing else; a disk that is away for a moment costs none.
func TestQueue_BadSector(t *testing.T) {
	const count = 5000
	fill := func(t *testing.T) (*badSectorFS, *Queue, *Route) {
		t.Helper()
		fs := &badSectorFS{FS: vfs.NewMem(), from: 3 * mediumPage, to: 4 * mediumPage}
		opts := testOptions(fs)
		opts.mediumPatience = 300 * time.Millisecond
		q, _, err := Open("store", opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { q.Close() })
		r, err := q.Route("default")
		if err != nil {
			t.Fatal(err)
		}
		ms := messages(NewFileID(), count)
		for i := range ms {
			ms[i].Body = fmt.Appendf(nil, "%x", NewFileID()) // takes its room when compressed, too
		}
		if err := r.Append(ms); err != nil {
			t.Fatal(err)
		}
		if err := q.engine.db.Flush(); err != nil {
			t.Fatal(err)
		}
		fs.bad.Store(true)
		return fs, q, r
	}
	t.Run("for ever", func(t *testing.T) {
		fs, q, r := fill(t)
		got := len(leaseUntil(t, r))
		if d := q.Damage(); d.Damaged == 0 || got+int(d.Missing) != count {
			t.Errorf("%d of %d were there, reported %+v", got, count, d)
		}
		if got < count-1000 {
			t.Errorf("%d of %d messages are lost by one sector", count-got, count)
		}
		if err := r.Append(messages(NewFileID(), 1)); err != nil || fs.reads.Load() == 0 {
			t.Errorf("append after %d failed reads: %v", fs.reads.Load(), err)
		}
	})
	t.Run("for a moment", func(t *testing.T) {
		fs, q, r := fill(t)
		time.AfterFunc(mediumWait/2, func() { fs.bad.Store(false) })
		if got := len(leaseAll(t, r, count)); got != count || fs.reads.Load() == 0 {
			t.Errorf("leased %d of %d after %d failed reads", got, count, fs.reads.Load())
		}
		if d := q.Damage(); d != (DamageReport{}) {
			t.Errorf("a disk that was away is taken for damage: %+v", d)
		}
	})
	t.Run("too many", func(t *testing.T) {
		fs, q, r := fill(t)
		fs.from, fs.to = 0, 1<<40
		until(t, "the disk is found away", func() bool {
			_, err := r.Stats()
			_, _, _ = r.tryLease(10)
			return err != nil && strings.Contains(err.Error(), "salvage ")
		})
		fs.bad.Store(false)
		if got := len(leaseAll(t, r, count)); got != count {
			t.Errorf("leased %d of %d", got, count)
		}
		if d := q.Damage(); d.Missing != 0 {
			t.Errorf("the disk is back, and %+v", d)
		}
	})
}
