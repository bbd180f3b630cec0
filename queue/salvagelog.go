package queue

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
)

// readLogs puts the newest version of each key in the logs into the scratch
// database.
func (s *salvage) readLogs() error {
	b := s.scratch.NewBatch()
	for _, log := range s.from.logs {
		if log.number < s.minLog {
			continue // all of it is in tables
		}
		bad := uint64(0)
		scan, err := s.from.scanLog(log, func(_ logScan, batch []byte) error {
			err := guarded(func() error { return s.addBatch(b, batch, s.ageOf(log)) })
			if err != nil && ofSystem(err) {
				return err
			}
			if err != nil {
				bad++
			}
			if b.Len() < salvageBatch {
				return nil
			}
			err = guarded(func() error { return s.scratch.Apply(b, pebble.NoSync) })
			b = s.scratch.NewBatch()
			return err
		})
		if err != nil {
			return fmt.Errorf("log %s: %w", log.name, err)
		}
		// Where a log was not closed in order, a gap may be what was written
		// last, and was never synced.
		s.report.note(uint64(scan.gaps)+bad, "log %s: %d gaps, %d batches cannot be decoded", log.name, scan.gaps, bad)
	}
	return guarded(func() error { return s.scratch.Apply(b, pebble.NoSync) })
}

// ageOf is the number of a log as the file of an age: what no table has yet is
// newer than all tables, also than those that have larger numbers, since they
// were made while the log was written.
func (s *salvage) ageOf(log logFile) uint64 {
	if s.unflushed != 0 && log.number >= s.unflushed {
		return log.number | 1<<63
	}
	return log.number
}

// addBatch adds the entries of a batch. Logs and batches come in their order, so
// that newer versions replace older ones.
func (s *salvage) addBatch(b *pebble.Batch, batch []byte, log uint64) error {
	seq := batchSeq(batch)
	for r := batchrepr.Read(batch); ; seq++ {
		kind, key, value, ok, err := r.Next()
		if err != nil || !ok {
			return err
		}
		if kind == pebble.InternalKeyKindLogData {
			seq-- // takes no number
			continue
		}
		if kind == pebble.InternalKeyKindRangeDelete {
			s.tombstones = append(s.tombstones, tombstone{bytes.Clone(key), bytes.Clone(value), age{seq, log}})
			continue
		}
		entry := binary.BigEndian.AppendUint64(make([]byte, 0, len(value)+17), seq)
		entry = binary.BigEndian.AppendUint64(entry, log)
		entry = append(append(entry, byte(kind)), value...)
		if err := b.Set(key, entry, nil); err != nil {
			return err
		}
	}
}

// scratchSource gives the entries of the logs.
type scratchSource struct {
	it      *pebble.Iterator
	started bool
}

func newScratchSource(db *pebble.DB) (*scratchSource, error) {
	it, err := db.NewIter(nil)
	return &scratchSource{it: it}, err
}

func (s *scratchSource) next() (v version, ok bool, err error) {
	err = guarded(func() error {
		if s.started {
			ok = s.it.Next()
		} else {
			s.started = true
			ok = s.it.First()
		}
		if ok {
			entry := s.it.Value()
			at := age{binary.BigEndian.Uint64(entry), binary.BigEndian.Uint64(entry[8:])}
			v = version{s.it.Key(), at, pebble.InternalKeyKind(entry[16]), entry[17:]}
		}
		return s.it.Error()
	})
	return v, ok, err
}

func (s *scratchSource) close() error {
	if s.it == nil {
		return nil
	}
	it := s.it
	s.it = nil
	return it.Close()
}
