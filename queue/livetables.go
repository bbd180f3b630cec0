package queue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// live is what the manifest of a database says of its tables.
type live struct {
	tables  map[uint64]struct{}
	flushed uint64 // all entries up to this sequence number are in them
}

// liveTables asks Pebble which tables the manifest names, whether they are there
// or not. Nothing is changed.
func (l *listing) liveTables() (live, error) {
	lv := live{tables: map[uint64]struct{}{}}
	err := guarded(func() (err error) {
		db, err := pebble.Open(l.dir, &pebble.Options{
			FS: manifestFS{unlockedFS{l.fs}}, ReadOnly: true, DisableConsistencyCheck: true,
			FormatMajorVersion: pebble.FormatNewest, Logger: silentLogger{},
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		levels, err := db.SSTables()
		for _, level := range levels {
			for _, t := range level {
				lv.tables[uint64(t.BackingSSTNum)] = struct{}{}
				lv.flushed = max(lv.flushed, uint64(t.LargestSeqNum))
			}
		}
		return err
	})
	return lv, err
}

// manifestFS shows a database without its logs and options.
type manifestFS struct{ vfs.FS }

func (f manifestFS) List(dir string) ([]string, error) {
	names, err := f.FS.List(dir)
	kept := names[:0]
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") && !strings.HasPrefix(name, "OPTIONS-") {
			kept = append(kept, name)
		}
	}
	return kept, err
}

// silentLogger is for a database that is expected to be damaged.
type silentLogger struct{}

func (silentLogger) Infof(string, ...any)  {}
func (silentLogger) Errorf(string, ...any) {}
func (silentLogger) Fatalf(format string, args ...any) {
	panic(pebbleFatal{fmt.Errorf(format, args...)})
}

// hasOnly reports whether a table that the manifest does not name has entries
// that are neither in the tables that it names nor in a log.
func (l *listing) hasOnly(name string, flushed, firstLogged uint64) (bool, error) {
	t, err := l.openTable(0, name)
	if err != nil {
		if ofSystem(err) {
			return false, err
		}
		return false, nil // never finished
	}
	defer t.close()
	for {
		v, ok, err := t.next()
		if err != nil || !ok {
			return false, err
		}
		// Compactions give the number 0 to what is oldest.
		if v.seq == 0 || v.seq > flushed && v.seq < firstLogged {
			return true, nil
		}
	}
}
