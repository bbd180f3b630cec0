package queue

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// salvage copies all rows that can be read from the files of a database that
// cannot be opened into a new one: the newest version of each key that was not
// deleted. Of the database, one block of each table that overlaps is in memory
// at a time.
//
// A deletion that cannot be read brings back what it deleted: a message is
// published once more, with the same ID.
type salvage struct {
	from    *listing
	to      *engine
	scratch *pebble.DB // the newest version of each key in the logs

	trusted   bool   // the manifest says which tables and logs count
	minLog    uint64 // logs with smaller numbers do not
	unflushed uint64 // logs from this number on are in no table; 0 if nobody knows

	tables     []*tableStart
	merge      merge
	tombstones []tombstone // sorted by start
	active     []tombstone // those that have begun

	batch  *pebble.Batch
	report salvageReport
}

// salvageReport says what was found.
type salvageReport struct {
	rows    uint64
	damaged uint64
	details []string
}

func (r *salvageReport) note(n uint64, format string, args ...any) {
	if n == 0 {
		return
	}
	r.damaged += n
	if len(r.details) < 1000 { // a report is read by people
		r.details = append(r.details, fmt.Sprintf(format, args...))
	}
}

// tableStart is a table and where its keys begin, so that it is open only while
// they are merged.
type tableStart struct {
	number  uint64
	name    string
	first   []byte
	damaged uint64
}

// run copies the rows.
func (s *salvage) run() error {
	if err := s.chooseTables(); err != nil {
		return err
	}
	if err := s.readLogs(); err != nil {
		return err
	}
	slices.SortFunc(s.tables, func(a, b *tableStart) int { return bytes.Compare(a.first, b.first) })
	slices.SortFunc(s.tombstones, func(a, b tombstone) int { return bytes.Compare(a.start, b.start) })
	logged, err := newScratchSource(s.scratch)
	if err != nil {
		return err
	}
	defer s.merge.close()
	if err := s.merge.push(logged); err != nil {
		return err
	}
	s.batch = s.to.db.NewBatch()
	if err := s.copyRows(); err != nil {
		return err
	}
	return s.flush()
}

// chooseTables looks at all tables once. Those of the manifest are enough, if it
// can be read to its end and all of them are sound. Otherwise all are taken,
// and all logs, since what is obsolete may hold what is damaged elsewhere.
func (s *salvage) chooseTables() error {
	lv, err := s.readLive()
	if err != nil {
		return err
	}
	for number := range lv.tables {
		if s.from.tables[number] == "" {
			s.report.note(1, "table %06d: missing", number)
			s.trusted = false
		}
	}
	for _, number := range slices.Sorted(maps.Keys(s.from.tables)) {
		t, err := s.examine(number, s.from.tables[number])
		if err != nil {
			return err
		}
		if _, named := lv.tables[number]; t.damaged > 0 && (named || !s.trusted) {
			s.report.note(t.damaged, "table %s: %d blocks cannot be read", t.name, t.damaged)
			s.trusted = false
		}
		s.tables = append(s.tables, t)
	}
	if !s.trusted {
		s.minLog = 0
		return nil
	}
	obsolete := func(number uint64) bool { _, named := lv.tables[number]; return !named }
	s.tables = slices.DeleteFunc(s.tables, func(t *tableStart) bool { return obsolete(t.number) })
	s.tombstones = slices.DeleteFunc(s.tombstones, func(t tombstone) bool { return obsolete(t.file) })
	return nil
}

// readLive reads the manifest, which is trusted if it can be read to its end.
func (s *salvage) readLive() (lv live, err error) {
	if s.from.manifest == "" || s.from.format == "" {
		s.report.note(1, "a marker file is missing")
		return lv, nil
	}
	m, err := s.from.readManifest()
	if err == nil && m.torn {
		s.report.note(1, "%s is cut or damaged", s.from.manifest)
		return lv, nil
	}
	if err == nil {
		lv, err = s.from.liveTables()
	}
	if err != nil && ofSystem(err) {
		return lv, err
	}
	if err != nil {
		s.report.note(1, "%s: %v", s.from.manifest, err)
		return live{}, nil
	}
	s.trusted, s.minLog, s.unflushed = true, m.minLog, m.minLog
	return lv, nil
}

// examine reads a table from beginning to end.
func (s *salvage) examine(number uint64, name string) (*tableStart, error) {
	start := &tableStart{number: number, name: name}
	t, err := s.from.openTable(number, name)
	if err != nil && ofSystem(err) {
		return nil, err
	}
	if err != nil {
		start.damaged = 1
		return start, nil
	}
	defer t.close()
	for {
		v, ok, err := t.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if start.first == nil {
			start.first = bytes.Clone(v.key)
		}
	}
	start.damaged = t.damaged
	s.tombstones = append(s.tombstones, t.tombstones...)
	return start, nil
}

// copyRows merges all sources, key by key.
func (s *salvage) copyRows() error {
	var best version
	for {
		if err := s.openTables(); err != nil {
			return err
		}
		done := len(s.merge) == 0
		if best.key != nil && (done || !bytes.Equal(s.merge[0].at.key, best.key)) {
			if err := s.take(best); err != nil {
				return err
			}
			best.key = nil
		}
		if done {
			return nil
		}
		if v := s.merge[0].at; best.key == nil || v.newer(best.age, s.trusted) {
			best = v.clone()
		}
		if err := s.merge.advance(); err != nil {
			return err
		}
	}
}

// openTables opens the tables that begin where the merge is.
func (s *salvage) openTables() error {
	for len(s.tables) > 0 {
		start := s.tables[0]
		if start.first != nil {
			if len(s.merge) > 0 && bytes.Compare(start.first, s.merge[0].at.key) > 0 {
				return nil
			}
			t, err := s.from.openTable(start.number, start.name)
			if err != nil {
				return err
			}
			if err := s.merge.push(t); err != nil {
				return err
			}
		}
		s.tables = s.tables[1:]
	}
	return nil
}

// take copies the newest version of a key, unless it is deleted.
func (s *salvage) take(v version) error {
	for len(s.tombstones) > 0 && bytes.Compare(s.tombstones[0].start, v.key) <= 0 {
		s.active = append(s.active, s.tombstones[0])
		s.tombstones = s.tombstones[1:]
	}
	s.active = slices.DeleteFunc(s.active, func(t tombstone) bool { return bytes.Compare(t.end, v.key) <= 0 })
	for _, t := range s.active {
		if t.newer(v.age, s.trusted) {
			return nil
		}
	}
	if v.kind != pebble.InternalKeyKindSet && v.kind != pebble.InternalKeyKindSetWithDelete {
		return nil
	}
	s.report.rows++
	if err := s.batch.Set(v.key, v.value, nil); err != nil {
		return err
	}
	if s.batch.Len() < salvageBatch {
		return nil
	}
	return s.flush()
}

// salvageBatch is how many bytes are written at once.
const salvageBatch = 1 << 20

// flush writes the batch. It does not sync: the new database is flushed as a
// whole before it is used.
func (s *salvage) flush() error {
	err := s.to.await(s.to.submit(s.batch, false, nil))
	s.batch = s.to.db.NewBatch()
	return err
}
