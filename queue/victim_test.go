package queue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// victim is a store to be damaged, and what it must give back.
type victim struct {
	fs    *vfs.MemFS
	rows  map[string]string // key to value of each row of kinds d, m, p and t
	owner map[string]string // key to the file that has its newest version
	once  map[ID]string     // body of each message that was ever put

	live     []string // tables and logs that count
	liveLogs []string
	extra    int // how many messages came back in the last try that were gone
}

// victims makes one store that was closed, and one whose process was killed.
// Both have tables, a log, stages, delayed messages and dead letters.
func victims(t testing.TB, perRound int) map[string]*victim {
	t.Helper()
	fs := vfs.NewMem()
	once := map[ID]string{}
	q, _, err := Open("store", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	for round := range 6 {
		for _, name := range []string{"", "weather"} {
			fillRoute(t, q, name, round, perRound, once)
		}
		if round < 5 {
			if err := q.engine.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	killed := cloneStore(t, fs)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	out := map[string]*victim{"closed": {fs: fs, once: once}, "killed": {fs: killed, once: once}}
	for name, v := range out {
		v.survey(t, name)
	}
	return out
}

// fillRoute does a bit of everything.
func fillRoute(t testing.TB, q *Queue, name string, round, n int, once map[ID]string) {
	t.Helper()
	r, err := q.Route(name)
	if err != nil {
		t.Fatal(err)
	}
	batch := func(n int) []Message {
		ms := messages(NewFileID(), n)
		for i := range ms {
			ms[i].Body = fmt.Appendf(nil, "%s %d %s", name, round, strings.Repeat(string(ms[i].ID), 1+i%20))
			once[ms[i].ID] = string(ms[i].Body)
		}
		return ms
	}
	ms := batch(n)
	ms[n/2].Reason = "not-json"
	ms[n/4].Reason, ms[n/4].Partial = "torn", true
	for _, part := range [][]Message{ms[:n/3], ms[n/3:]} {
		if err := r.Append(part); err != nil {
			t.Fatal(err)
		}
	}
	held := r.NewStage(NewFileID(), StageInfo{File: ".held", Held: true})
	gone := r.NewStage(NewFileID(), StageInfo{File: "gone"})
	done := r.NewStage(NewFileID(), StageInfo{File: "done"}) // its chunks go by a range deletion
	for range 10 {
		for _, s := range []*Stage{held, gone, done} {
			if err := putOne(s, s.Len(), batch(3)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(gone.Discard(), done.Commit()); err != nil {
		t.Fatal(err)
	}
	if round == 0 {
		return
	}
	leases := leaseAll(t, r, n/2)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Nack(leases[0], time.Now().Add(time.Hour)))
	must(r.Nack(leases[1], time.Now().Add(-time.Hour)))
	must(r.DeadLetter(leases[2], "too-large"))
	must(r.Ack(leases[3 : len(leases)-5]...))
	r.Requeue(leases[len(leases)-5:]...)
}

func cloneStore(t testing.TB, from vfs.FS) *vfs.MemFS {
	t.Helper()
	to := vfs.NewMem()
	if ok, err := vfs.Clone(from, to, "store", "store"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	return to
}

// survey notes the rows of the store, and in which file each of them lies.
func (v *victim) survey(t testing.TB, name string) {
	t.Helper()
	v.rows, v.owner = map[string]string{}, map[string]string{}
	fs := cloneStore(t, v.fs)
	db, err := pebble.Open("store/db", &pebble.Options{FS: unlockedFS{fs}, FormatMajorVersion: pebble.FormatNewest, Logger: silentLogger{}})
	if err != nil {
		t.Fatal(err)
	}
	err = eachRowOf(db, nil, []byte{0xff}, func(key, value []byte) error {
		if bytes.IndexByte([]byte("dmpt"), key[0]) >= 0 {
			v.rows[string(key)] = string(value)
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	l, err := list(v.fs, "store/db")
	if err != nil {
		t.Fatal(err)
	}
	lv, err := l.liveTables()
	if err != nil {
		t.Fatal(err)
	}
	for number := range lv.tables {
		file := l.tables[number]
		v.live = append(v.live, file)
		tr, err := l.openTable(number, file)
		if err != nil || tr.damaged > 0 {
			t.Fatalf("%s: %s: %v, %d damaged", name, file, err, tr.damaged)
		}
		for e, ok, err := tr.next(); ok; e, ok, err = tr.next() {
			if err != nil {
				t.Fatal(err)
			}
			v.owner[string(e.key)] = file
		}
		tr.close()
	}
	s := &salvage{from: l}
	if s.scratch, err = pebble.Open("scratch", &pebble.Options{FS: vfs.NewMem(), Logger: silentLogger{}}); err != nil {
		t.Fatal(err)
	}
	m, err := l.readManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range l.logs {
		if log.number < m.minLog {
			continue
		}
		v.liveLogs = append(v.liveLogs, log.name)
		v.live = append(v.live, log.name)
		s.from = &listing{fs: l.fs, dir: l.dir, logs: []logFile{log}}
		if err := s.readLogs(); err != nil {
			t.Fatal(err)
		}
	}
	src, _ := newScratchSource(s.scratch)
	for e, ok, _ := src.next(); ok; e, ok, _ = src.next() {
		v.owner[string(e.key)] = fmt.Sprintf("%06d.log", e.file)
	}
	src.close()
	s.scratch.Close()
	for key := range v.rows {
		if v.owner[key] == "" {
			t.Fatalf("%s: nobody has %x", name, key)
		}
	}
	t.Logf("%s: %d rows in %d tables and %d logs", name, len(v.rows), len(l.tables), len(l.logs))
}

// files lists the files of the store, with their content. A queue that is open may
// delete some meanwhile.
func files(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir() {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out[name] = contentOf(t, fs, path)
	}
	return out
}

func contentOf(t testing.TB, fs vfs.FS, path string) string {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeContent(t testing.TB, fs vfs.FS, path, content string) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(f, content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// try damages a copy of the store, and checks what comes of it. mayLose tells
// from the file of a row whether it may be gone. It returns how many were lost,
// and the damage that was reported.
func (v *victim) try(t *testing.T, mayLose func(file string) bool, hurt func(fs *vfs.MemFS)) (lost int, damage DamageReport) {
	t.Helper()
	fs := cloneStore(t, v.fs)
	hurt(fs)
	var before map[string]string
	names, err := fs.List("store")
	if err != nil {
		t.Fatal(err)
	}
	wasAside := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, damagedPrefix+"2") })
	if _, err := fs.Stat("store/db"); err == nil {
		before = files(t, fs, "store/db")
	}
	start := time.Now()
	q, stages, err := Open("store", testOptions(fs))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("Open took %v", took)
	}
	damage = q.Damage()
	if s, err := q.Stats(); err != nil || s.Damaged != damage.Damaged {
		t.Errorf("Stats say %d damaged (%v), want %d", s.Damaged, err, damage.Damaged)
	}
	if damage.Dir != "" && before != nil && !wasAside {
		v.checkKept(t, fs, before, damage.Dir)
	}
	lost = v.checkServed(t, q, mayLose)
	for _, s := range stages {
		commit(t, s)
	}
	checkAllCounters(t, q)
	v.lease(t, q)
	damage = q.Damage()
	if err := q.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	q, _, err = Open("store", testOptions(fs))
	if err != nil {
		t.Fatalf("second Open: %v", err)
	}
	defer q.Close()
	if got := q.Damage(); got.Damaged != damage.Damaged || got.Dir != damage.Dir {
		t.Errorf("after a restart damage is %+v, want %+v", got, damage)
	}
	checkAllCounters(t, q)
	return lost, damage
}

// checkKept: what was set aside is what was there.
func (v *victim) checkKept(t *testing.T, fs vfs.FS, before map[string]string, dir string) {
	t.Helper()
	after := files(t, fs, "store/"+dir)
	if !strings.HasPrefix(after[reportFile], reportDone) {
		t.Errorf("%s is %q", reportFile, after[reportFile])
	}
	delete(after, reportFile)
	added := func(name string) bool { _, there := before[name]; return !there }
	if slices.ContainsFunc(slices.Collect(maps.Keys(after)), added) {
		// Pebble had it open before it met the damage, and has replayed the logs.
		isTable := func(name, _ string) bool { return strings.HasSuffix(name, ".sst") }
		maps.DeleteFunc(before, func(name, content string) bool { return !isTable(name, content) || content == "" })
		maps.DeleteFunc(after, func(name, _ string) bool { return before[name] == "" })
	}
	if !maps.Equal(before, after) {
		t.Errorf("set aside are %q, want %q", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}

// checkServed compares the rows that the queue has with those it had.
func (v *victim) checkServed(t *testing.T, q *Queue, mayLose func(file string) bool) (lost int) {
	t.Helper()
	got := map[ID]string{}
	if err := q.eachRow([]byte{'d'}, []byte{'u'}, func(key, value []byte) error {
		if bytes.IndexByte([]byte("dmpt"), key[0]) < 0 {
			return nil
		}
		m, err := decodeRecord(value)
		if err != nil {
			return err
		}
		if body, ok := v.once[m.ID]; !ok || body != string(m.Body) {
			t.Errorf("%s was never put", m.ID)
		}
		got[m.ID] = string(key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	v.extra = len(got) - len(v.rows)
	stolen := map[string]int{}
	for key, value := range v.rows {
		m, err := decodeRecord([]byte(value))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := got[m.ID]; ok {
			continue
		}
		lost++
		v.extra++
		if file := v.owner[key]; !mayLose(file) {
			stolen[file]++
		}
	}
	if len(stolen) > 0 {
		t.Errorf("of %d rows, these are lost from sound files: %v", len(v.rows), stolen)
	}
	return lost
}

// lease leases everything that is ready, and leaves it.
func (v *victim) lease(t *testing.T, q *Queue) {
	t.Helper()
	for _, r := range q.routes {
		for {
			leases, _, err := r.tryLease(1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(leases) == 0 {
				break
			}
			for _, l := range leases {
				if _, ok := v.once[l.ID]; !ok {
					t.Errorf("leased %s, which was never put", l.ID)
				}
			}
		}
		if s, err := r.Stats(); err != nil || s.Ready != 0 {
			t.Errorf("route %q: %+v (%v) when all was leased", r.Name(), s, err)
		}
	}
}

func checkAllCounters(t *testing.T, q *Queue) {
	t.Helper()
	for _, r := range q.routes {
		if err := scanCounters(r); err != nil {
			t.Errorf("route %q: %v", r.Name(), err)
		}
	}
}

func none(string) bool { return false }

func only(name string) func(string) bool {
	return func(file string) bool { return file == name }
}

// damageRounds is how many times the random tests damage something.
func damageRounds(short int) int {
	if n, err := strconv.Atoi(os.Getenv("SPOOLFS_CHAOS")); err == nil {
		return n
	}
	return short
}
