package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func checkStore(t *testing.T, fs vfs.FS, repair bool) *CheckReport {
	t.Helper()
	r, err := Check("store", CheckOptions{Options: testOptions(fs), Repair: repair})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	return r
}

// TestCheck_Sound: a sound store has no problems, its counts are those of the
// queue, and Check changes nothing.
func TestCheck_Sound(t *testing.T) {
	for name, v := range victims(t, 40) {
		t.Run(name, func(t *testing.T) {
			fs := cloneStore(t, v.fs)
			before := files(t, fs, "store/db")
			r := checkStore(t, fs, false)
			if r.Count != 0 || len(r.Problems) != 0 {
				t.Errorf("problems: %+v", r.Problems)
			}
			if after := files(t, fs, "store/db"); !maps.Equal(before, after) {
				t.Error("Check has changed the store")
			}
			q, _, err := Open("store", testOptions(fs))
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			if len(r.Routes) != 2 {
				t.Errorf("%d routes", len(r.Routes))
			}
			for _, got := range r.Routes {
				s, err := q.routes[got.Name].Stats()
				if err != nil || s.Ready != got.Ready || s.Staged != got.Staged || s.Delayed != got.Delayed || s.Dead != got.Dead || s.Bytes != got.Bytes {
					t.Errorf("Check found %+v, the queue has %+v (%v)", got, s, err)
				}
				if got.Stages < 6 || got.Stages > 7 { // the last commit may be lost with the process
					t.Errorf("%q has %d stages, want 6", got.Name, got.Stages)
				}
			}
		})
	}
}

// TestCheck_Locked: a store in use is not checked.
func TestCheck_Locked(t *testing.T) {
	fs := vfs.NewMem()
	q, _, err := Open("store", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if _, err := Check("store", CheckOptions{Options: testOptions(fs)}); !errors.Is(err, ErrLocked) {
		t.Errorf("Check: %v, want %v", err, ErrLocked)
	}
	if _, err := Check("nothing", CheckOptions{Options: testOptions(fs)}); err == nil {
		t.Error("a store that is not there is in order")
	}
}

// TestCheck_Finds: each kind of problem is found, and repaired.
func TestCheck_Finds(t *testing.T) {
	v := victims(t, 30)["closed"]
	const route = 2
	counted := func(change func(c *counters)) func(*testing.T, *pebble.DB) {
		return func(t *testing.T, db *pebble.DB) {
			value, closer, err := db.Get(routeKey(kindCounters, route))
			if err != nil {
				t.Fatal(err)
			}
			defer closer.Close()
			c, err := decodeCounters(value)
			if err != nil {
				t.Fatal(err)
			}
			change(&c)
			set(t, db, routeKey(kindCounters, route), c.encode())
		}
	}
	cases := map[string]func(*testing.T, *pebble.DB){
		"counters":      counted(func(c *counters) { c.delayed.bytes++ }),
		"next":          counted(func(c *counters) { c.next = 3 }),
		"head":          counted(func(c *counters) { c.head = c.next }),
		"record":        func(t *testing.T, db *pebble.DB) { set(t, db, firstKey(t, db, kindDead), []byte("what")) },
		"stage":         func(t *testing.T, db *pebble.DB) { set(t, db, firstKey(t, db, kindStage), []byte("what")) },
		"route-name":    func(t *testing.T, db *pebble.DB) { set(t, db, routeKey(kindRoute, route), []byte("what")) },
		"key-malformed": func(t *testing.T, db *pebble.DB) { set(t, db, []byte("md"), []byte("what")) },
		"delayed-key": func(t *testing.T, db *pebble.DB) {
			set(t, db, delayedKey(route, 0, 9), encodeRecord(&Message{ID: "x"}))
		},
	}
	for kind, hurt := range cases {
		t.Run(kind, func(t *testing.T) {
			fs := cloneStore(t, v.fs)
			change(t, fs, hurt)
			r := checkStore(t, fs, false)
			if r.Kinds[kind] == 0 || !slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Kind == kind && p.Detail != "" }) {
				t.Fatalf("not found among %+v", r.Problems)
			}
			messages := total(r)
			r = checkStore(t, fs, true)
			if !r.Repaired && kind != "delayed-key" {
				t.Errorf("not repaired: %+v", checkStore(t, fs, false).Problems)
			}
			if got := total(r); got != messages {
				t.Errorf("%d messages after the repair, %d before", got, messages)
			}
			if r = checkStore(t, fs, false); kind != "record" && kind != "delayed-key" && r.Count > 0 {
				t.Errorf("left: %+v", r.Problems)
			}
		})
	}
}

func total(r *CheckReport) (n uint64) {
	for _, r := range r.Routes {
		n += r.Ready + r.Staged + r.Delayed + r.Dead
	}
	return n
}

// change opens the database of a store directly.
func change(t *testing.T, fs vfs.FS, f func(*testing.T, *pebble.DB)) {
	t.Helper()
	db, err := pebble.Open("store/db", &pebble.Options{FS: unlockedFS{fs}, FormatMajorVersion: pebble.FormatNewest, Logger: silentLogger{}})
	if err != nil {
		t.Fatal(err)
	}
	f(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func set(t *testing.T, db *pebble.DB, key, value []byte) {
	t.Helper()
	if err := db.Set(key, value, nil); err != nil {
		t.Fatal(err)
	}
}

func firstKey(t *testing.T, db *pebble.DB, kind byte) (first []byte) {
	t.Helper()
	if err := eachRowOf(db, []byte{kind}, []byte{kind + 1}, func(key, _ []byte) error {
		first = slices.Clone(key)
		return errStop
	}); err != nil {
		t.Fatal(err)
	}
	return first
}

// TestCheck_Damaged: files that are damaged are a problem, no error, and Repair
// does what Open does.
func TestCheck_Damaged(t *testing.T) {
	v := victims(t, 40)["closed"]
	all := files(t, v.fs, "store/db")
	for _, file := range slices.Sorted(maps.Keys(all)) {
		t.Run(file, func(t *testing.T) {
			fs := cloneStore(t, v.fs)
			writeContent(t, fs, "store/db/"+file, all[file][:len(all[file])/2])
			r := checkStore(t, fs, false)
			wants := slices.Contains(v.live, file) || strings.HasPrefix(file, "MANIFEST")
			if wants && file != v.liveLogs[0] && r.Kinds["store"] == 0 {
				t.Errorf("not found: %+v", r.Problems)
			}
			if r = checkStore(t, fs, true); !r.Repaired {
				t.Errorf("not repaired: %+v", checkStore(t, fs, false).Problems)
			}
			if r = checkStore(t, fs, false); r.Count > 0 {
				t.Errorf("left: %+v", r.Problems)
			}
			if r.Kinds["store"] > 0 && r.Damage == (DamageReport{}) {
				t.Errorf("damage: %+v", r.Damage)
			}
		})
	}
}

// TestCheck_ManyProblems: the list does not grow without bound (D9).
func TestCheck_ManyProblems(t *testing.T) {
	fs := vfs.NewMem()
	q, _, err := Open("store", testOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	const n = 5000
	if err := r.Append(messages(NewFileID(), n)); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	change(t, fs, func(t *testing.T, db *pebble.DB) {
		b := db.NewBatch()
		for seq := range uint64(n) {
			if err := b.Set(seqKey(kindMessage, 1, firstNumber+seq), fmt.Append(nil, seq), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Apply(b, nil); err != nil {
			t.Fatal(err)
		}
	})
	got := checkStore(t, fs, false)
	if len(got.Problems) != maxProblems || got.Kinds["record"] != n || got.Count != n+2 { // and the counters, and those of the user
		t.Errorf("%d problems listed, %d counted, by kind %v", len(got.Problems), got.Count, got.Kinds)
	}
}
