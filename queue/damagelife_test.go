package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestOpen_CrashWhileSettingAside ends the salvage of a damaged store at each of
// its writes: the next Open ends well, and has everything.
func TestOpen_CrashWhileSettingAside(t *testing.T) {
	v := victims(t, 20)["closed"]
	want, _ := v.try(t, none, cutManifest(t))
	if want != 0 {
		t.Fatalf("lost %d with a cut manifest", want)
	}
	fs := vfs.NewCrashableMem()
	if ok, err := vfs.Clone(v.fs, fs, "store", "store", vfs.CloneSync); !ok || err != nil {
		t.Fatal(ok, err)
	}
	cutManifest(t)(fs)
	var mu sync.Mutex
	var crashes []*vfs.MemFS
	rng := rand.New(rand.NewPCG(1, 2))
	watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
			crashes = append(crashes, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng}))
		}
		return nil
	})
	q, _, err := Open("store", testOptions(errorfs.Wrap(fs, watch)))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	mu.Lock()
	defer mu.Unlock()
	seed := rand.Uint64()
	t.Logf("%d crashes, seed of the choice %d", len(crashes), seed)
	step := max(1, len(crashes)/damageRounds(40))
	for i := int(seed % uint64(step)); i < len(crashes); i += step {
		fs := crashes[i]
		again := &victim{fs: fs, rows: v.rows, owner: v.owner, once: v.once}
		again.try(t, none, func(*vfs.MemFS) {})
		if t.Failed() {
			t.Fatalf("crash %d", i)
		}
	}
}

// syncAll makes everything in the store survive a crash.
func syncAll(t *testing.T, fs vfs.FS) {
	t.Helper()
	for _, dir := range []string{"", "store", "store/db"} {
		if err := syncDir(fs, dir); err != nil {
			t.Fatal(err)
		}
	}
}

// cutManifest leaves nothing of the manifest but its first half.
func cutManifest(t *testing.T) func(*vfs.MemFS) {
	return func(fs *vfs.MemFS) {
		t.Helper()
		l, err := list(fs, "store/db")
		if err != nil {
			t.Fatal(err)
		}
		content := contentOf(t, fs, l.path(l.manifest))
		writeContent(t, fs, l.path(l.manifest), content[:len(content)/4])
		syncAll(t, fs)
	}
}

// TestOpen_NewerDatabase: a database in a newer format of Pebble is refused and
// not touched.
func TestOpen_NewerDatabase(t *testing.T) {
	v := victims(t, 20)["closed"]
	fs := cloneStore(t, v.fs)
	writeContent(t, fs, "store/db/marker.format-version.000999.999", "")
	before := files(t, fs, "store/db")
	if _, _, err := Open("store", testOptions(fs)); !errors.Is(err, ErrNewerStore) {
		t.Errorf("Open: %v, want %v", err, ErrNewerStore)
	}
	if after := files(t, fs, "store/db"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the database has been touched")
	}
}

// TestOpen_PassingErrors: an error of the disk is no damage. Each read of an
// Open fails once.
func TestOpen_PassingErrors(t *testing.T) {
	v := victims(t, 20)["killed"]
	for at := int64(0); ; at++ {
		fs := cloneStore(t, v.fs)
		var n atomic.Int64
		once := errorfs.InjectorFunc(func(op errorfs.Op) error {
			// Not List: when that fails late in pebble.Open, a compaction goes
			// on in the remains of the database and panics.
			if op.Kind != errorfs.OpOpen && op.Kind != errorfs.OpFileRead && op.Kind != errorfs.OpFileReadAt {
				return nil
			}
			if n.Add(1) == at+1 {
				return errorfs.ErrInjected
			}
			return nil
		})
		q, _, err := Open("store", testOptions(errorfs.Wrap(fs, once)))
		if err == nil {
			if d := q.Damage(); d != (DamageReport{}) {
				t.Errorf("failure of operation %d is taken for damage: %+v", at, d)
			}
			q.Close()
		} else if !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("failure of operation %d: %v", at, err)
		}
		names, _ := fs.List("store")
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, damagedPrefix) }) {
			t.Fatalf("failure of operation %d: %q", at, names)
		}
		if n.Load() < at+1 {
			t.Logf("%d operations", at)
			return
		}
	}
}

// TestQueue_BlockGoesBad: a block of a table goes bad while the queue runs.
// Lease, promotion and iteration go on with what is left.
func TestQueue_BlockGoesBad(t *testing.T) {
	uses := map[string]func(t *testing.T, r *Route) int{
		"Lease": func(t *testing.T, r *Route) int {
			return len(leaseUntil(t, r))
		},
		"Dead": func(t *testing.T, r *Route) (n int) {
			for _, err := range r.Dead() {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		},
		"promotion": func(t *testing.T, r *Route) int {
			return len(leaseUntil(t, r))
		},
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			const count = 3000
			fs := vfs.NewMem()
			q := storeOf(t, fs, name, count)
			defer q.Close()
			hurtTables(t, fs)
			r, err := q.Route("default")
			if err != nil {
				t.Fatal(err)
			}
			got := use(t, r)
			if got == 0 || got == count {
				t.Errorf("%d of %d were there", got, count)
			}
			d := q.Damage()
			if d.Damaged == 0 || d.Dir == "" || d.Missing != uint64(count-got) {
				t.Errorf("%d are missing, reported %+v", count-got, d)
			}
			if err := r.Append(messages(NewFileID(), 1)); err != nil {
				t.Error(err)
			}
		})
	}
}

// leaseUntil leases until nothing comes any more, and returns what has come. The
// leases of a queue that was parked meanwhile are dropped, and their messages
// come again.
func leaseUntil(t *testing.T, r *Route) map[ID]*Lease {
	t.Helper()
	all := map[ID]*Lease{}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		leases, wait, err := r.tryLease(500)
		if errors.Is(err, ErrFault) {
			if err := r.q.awaitResume(t.Context()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(leases) == 0 && wait > time.Second {
			return all
		}
		for _, l := range leases {
			all[l.ID] = l
		}
	}
	t.Fatal("Lease never ends")
	return nil
}

// storeOf opens a store with messages that have been flushed into tables, and
// are not in the cache.
func storeOf(t *testing.T, fs vfs.FS, use string, count int) *Queue {
	t.Helper()
	q, _, err := Open("store", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	ms := messages(NewFileID(), count)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range ms {
		ms[i].Body = fmt.Appendf(nil, "%x %x %x %x", rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64())
		if use == "Dead" {
			ms[i].Reason = "not-json"
		}
	}
	if err := r.Append(ms); err != nil {
		t.Fatal(err)
	}
	if use == "promotion" {
		for _, l := range leaseAll(t, r, count) {
			if err := r.Nack(l, time.Now().Add(300*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(q.engine.db.Flush(), q.Close()); err != nil {
		t.Fatal(err)
	}
	if q, _, err = Open("store", testOptions(fs)); err != nil {
		t.Fatal(err)
	}
	return q
}

// hurtTables damages a block in the middle of each larger table, in place.
func hurtTables(t *testing.T, fs vfs.FS) {
	t.Helper()
	l, err := list(fs, "store/db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range l.tables {
		info, err := fs.Stat(l.path(name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() < 50_000 {
			continue
		}
		f, err := fs.OpenReadWrite(l.path(name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(make([]byte, 64), info.Size()/2)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRoute_CorruptRecords: records that cannot be decoded become dead letters,
// also delayed ones, and are in nobody's way.
func TestRoute_CorruptRecords(t *testing.T) {
	dir := t.TempDir()
	q, _, err := Open(dir, testOptions(vfs.Default))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Append(messages(NewFileID(), 3000)); err != nil {
		t.Fatal(err)
	}
	for _, l := range leaseAll(t, r, 3000)[:1500] {
		if err := r.Nack(l, time.Now().Add(50*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	b := q.engine.db.NewBatch()
	if err := q.eachRow([]byte{'m'}, []byte{'u'}, func(key, value []byte) error {
		if key[0] != kindMessage && key[0] != kindDelayed || lastUint64(key)%100 == 0 {
			return nil // every hundredth stays as it is: D9
		}
		bad := append([]byte(nil), value...)
		bad[len(bad)/2] ^= 1
		return b.Set(key, bad, nil)
	}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(q.engine.db.Apply(b, pebble.Sync), q.Close()); err != nil {
		t.Fatal(err)
	}
	if q, _, err = Open(dir, testOptions(vfs.Default)); err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if r, err = q.Route("default"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(60 * time.Millisecond) // until what is delayed is due
	if got := len(leaseUntil(t, r)); got != 30 {
		t.Errorf("leased %d, want 30", got)
	}
	s, err := r.Stats()
	if err != nil || s.Dead != 2970 || s.Delayed != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	for m, err := range r.Dead() {
		if err != nil || !strings.HasPrefix(m.Reason, "corrupt-record: ") || len(m.Body) == 0 {
			t.Fatalf("dead letter %+v, %v", m, err)
		}
	}
	if err := scanCounters(r); err != nil {
		t.Error(err)
	}
}

// TestOpen_DamagedFormat: a store whose FORMAT is damaged is opened, and the
// file is kept.
func TestOpen_DamagedFormat(t *testing.T) {
	v := victims(t, 20)["closed"]
	for name, hurt := range map[string]func(*vfs.MemFS){
		"missing": func(fs *vfs.MemFS) { fs.Remove("store/FORMAT") },
		"garbage": func(fs *vfs.MemFS) { writeContent(t, fs, "store/FORMAT", "????") },
	} {
		t.Run(name, func(t *testing.T) {
			v.try(t, none, func(fs *vfs.MemFS) { hurt(fs) })
		})
	}
}

// TestSalvage_ObsoleteDeletion: a compaction gives the sequence number 0 to what
// it leaves, and a deletion in a table that is obsolete since then must not win
// over it, when the manifest is damaged and nobody knows which table is obsolete.
// But one that came later does.
func TestSalvage_ObsoleteDeletion(t *testing.T) {
	fs := vfs.NewMem()
	q, _, err := Open("store", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Append(messages(NewFileID(), 10)); err != nil {
		t.Fatal(err)
	}
	flush := func() {
		t.Helper()
		if err := q.engine.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	leases := leaseAll(t, r, 10)
	for _, l := range leases { // their rows are deleted, and come again
		if err := r.Nack(l, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	obsolete := files(t, fs, "store/db")
	leases = leaseAll(t, r, 10) // again, so that they are ready
	flush()
	if err := q.engine.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	if err := r.Ack(leases[:4]...); err != nil {
		t.Fatal(err)
	}
	flush()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range obsolete {
		if _, err := fs.Stat("store/db/" + name); err != nil && strings.HasSuffix(name, ".sst") {
			writeContent(t, fs, "store/db/"+name, content)
		}
	}
	cutManifest(t)(fs)
	if q, _, err = Open("store", testOptions(fs)); err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	got := map[ID]bool{}
	if err := q.eachRow([]byte{kindMessage}, []byte{kindMessage + 1}, func(_, value []byte) error {
		m, err := decodeRecord(value)
		if err == nil {
			got[m.ID] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i, l := range leases {
		if settled := i < 4; got[l.ID] == settled {
			t.Errorf("%s (settled: %v) is there: %v", l.ID, settled, got[l.ID])
		}
	}
}
