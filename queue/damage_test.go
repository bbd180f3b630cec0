package queue

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestOpen_DamagedFiles damages one file at a time (G9, D5, D6, D7, D25).
func TestOpen_DamagedFiles(t *testing.T) {
	for name, v := range victims(t, 60) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := files(t, v.fs, "store/db")
			for _, file := range slices.Sorted(maps.Keys(all)) {
				t.Run(file, func(t *testing.T) { v.damageFile(t, file, all[file], name == "closed") })
			}
		})
	}
}

func (v *victim) damageFile(t *testing.T, file, content string, closed bool) {
	path := "store/db/" + file
	live := slices.Contains(v.live, file)
	table, log := live && strings.HasSuffix(file, ".sst"), live && strings.HasSuffix(file, ".log")
	loses := none
	if table || log {
		loses = only(file)
	}
	t.Run("deleted", func(t *testing.T) {
		lost, damage := v.try(t, loses, func(fs *vfs.MemFS) { fs.Remove(path) })
		if table && (damage.Damaged == 0 || lost > 0 && damage.Missing == 0) {
			t.Errorf("lost %d, reported %+v", lost, damage)
		}
	})
	written := len(strings.TrimRight(content, "\x00")) // a log has zeroes ahead
	for tenth := range 10 {
		t.Run(fmt.Sprintf("cut-%d", tenth), func(t *testing.T) {
			lost, damage := v.try(t, loses, func(fs *vfs.MemFS) { writeContent(t, fs, path, content[:written*tenth/10]) })
			if table && damage.Damaged == 0 {
				t.Errorf("lost %d, reported %+v", lost, damage)
			}
			if strings.HasPrefix(file, "OPTIONS") && (v.extra > 0 || damage.Damaged > 1 || damage.Missing > 0) {
				t.Errorf("%d messages came back, though no deletion was damaged; reported %+v", v.extra, damage)
			}
		})
	}
	if written < 4096 {
		return
	}
	t.Run("zeroed", func(t *testing.T) {
		at := written / 2
		lost, damage := v.try(t, loses, func(fs *vfs.MemFS) {
			writeContent(t, fs, path, content[:at]+strings.Repeat("\x00", 2048)+content[at+2048:])
		})
		if lost > len(v.rows)/3 {
			t.Errorf("lost %d of %d by one block", lost, len(v.rows))
		}
		if (table || log && closed) && damage.Damaged == 0 {
			t.Errorf("lost %d, reported %+v", lost, damage)
		}
	})
}

// TestOpen_RandomDamage flips bytes anywhere (D7: the loss is limited to what is
// bad). SPOOLFS_CHAOS sets how often.
func TestOpen_RandomDamage(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	vs := victims(t, 40)
	for i := range damageRounds(60) {
		v := vs[[]string{"closed", "killed"}[rng.IntN(2)]]
		all := files(t, v.fs, "store/db")
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return all[name] == "" })
		file := names[rng.IntN(len(names))]
		b := []byte(all[file])
		flips := 1 + rng.IntN(3)
		for range flips {
			b[rng.IntN(max(1, len(strings.TrimRight(all[file], "\x00"))))] ^= byte(1 + rng.IntN(255))
		}
		v.try(t, only(file), func(fs *vfs.MemFS) { writeContent(t, fs, "store/db/"+file, string(b)) })
		if t.Failed() {
			t.Fatalf("round %d: %d flips in %s", i, flips, file)
		}
	}
}

// TestOpen_Garbage: files that nobody knows are left alone.
func TestOpen_Garbage(t *testing.T) {
	v := victims(t, 20)["killed"]
	for name, content := range map[string]string{
		"db/core": "x", "db/000001x.sst": "y", "db/MANIFEST": "z", "notes.txt": "n", "db/marker.nonsense": "m",
		"db/CURRENT": "MANIFEST-000001\n", "db/marker.manifest.000900.MANIFEST-000900": "", "db/OPTIONS-999999": "?",
		"db/999999.log": strings.Repeat("garbage", 10000), "damaged-1": "a file", "salvage": "mine",
	} {
		t.Run(name, func(t *testing.T) {
			var fs *vfs.MemFS
			_, damage := v.try(t, none, func(f *vfs.MemFS) {
				fs = f
				writeContent(t, fs, "store/"+name, content)
			})
			path := "store/" + name
			if rest, in := strings.CutPrefix(name, "db/"); in && damage.Dir != "" {
				path = "store/" + damage.Dir + "/" + rest
			}
			if strings.HasPrefix(name, "db/OPTIONS") || strings.HasSuffix(name, ".log") || name == "salvage" {
				return // Pebble's, and ours
			}
			if got := contentOf(t, fs, path); got != content {
				t.Errorf("%s is %q, want %q", path, got, content)
			}
		})
	}
}

// TestOpen_DamagedRows damages single rows of the bookkeeping.
func TestOpen_DamagedRows(t *testing.T) {
	v := victims(t, 30)["closed"]
	for _, kind := range []byte{kindCounters, kindRoute, kindStage} {
		for _, how := range []string{"flipped", "gone", "empty"} {
			t.Run(fmt.Sprintf("%c-%s", kind, how), func(t *testing.T) {
				_, damage := v.try(t, none, func(fs *vfs.MemFS) { hurtRows(t, fs, kind, how) })
				if damage.Dir != "" {
					t.Errorf("the database was set aside for one row: %+v", damage)
				}
				if how != "gone" && damage.Damaged == 0 {
					t.Errorf("not counted: %+v", damage)
				}
			})
		}
	}
}

// hurtRows damages the second row of a kind.
func hurtRows(t *testing.T, fs vfs.FS, kind byte, how string) {
	t.Helper()
	db, err := pebble.Open("store/db", &pebble.Options{FS: unlockedFS{fs}, FormatMajorVersion: pebble.FormatNewest, Logger: silentLogger{}})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = eachRowOf(db, []byte{kind}, []byte{kind + 1}, func(key, value []byte) error {
		if n++; n != 2 {
			return nil
		}
		switch how {
		case "gone":
			return db.Delete(key, nil)
		case "empty":
			return db.Set(key, nil, nil)
		}
		value = bytes.Clone(value)
		value[len(value)/2] ^= 0xff
		return db.Set(key, value, nil)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
