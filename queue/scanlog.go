package queue

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// logScan is what a log of Pebble looks like.
type logScan struct {
	records int
	gaps    int  // damaged regions with something readable behind them
	closed  bool // it ends with the mark of a log that was closed in order
}

// The layout of a log is Pebble's (record/record.go): blocks of 32 KiB, each
// with chunks of a header and a part of a record. All chunks carry the number
// of the log, since the file may have been another log before.
const (
	logBlock     = 32 << 10
	logHeader    = 11 // checksum 4, length 2, kind 1, number of the log 4
	logHeaderFor = 19 // the same, with the offset that was synced
)

// logScanner reads a log further than Pebble's reader does, which ends at the
// first chunk that it does not like.
type logScanner struct {
	logScan
	number uint32
	emit   func(record []byte) error

	block  []byte
	record []byte // what has come of a record, from its first chunk on
	inside bool   // of a record
	bad    bool   // in a damaged region, or behind the end
}

// batchSeq is the sequence number of the first entry of a batch.
func batchSeq(batch []byte) uint64 { return binary.LittleEndian.Uint64(batch) }

// scanLog calls f for each batch that can be read, with what was met before it.
func (l *listing) scanLog(log logFile, f func(so logScan, batch []byte) error) (logScan, error) {
	file, err := l.fs.Open(l.path(log.name))
	if err != nil {
		return logScan{}, err
	}
	defer file.Close()
	s := &logScanner{number: uint32(log.number), block: make([]byte, 0, logBlock)}
	s.emit = func(record []byte) error {
		if len(record) < 12 { // sequence number and count
			return nil
		}
		s.records++
		return f(s.logScan, record)
	}
	for {
		n, err := io.ReadFull(file, s.block[:logBlock])
		s.block = s.block[:n]
		if n > 0 {
			if err := s.scanBlock(); err != nil || s.closed {
				return s.logScan, err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return s.logScan, nil
		}
		if err != nil {
			return s.logScan, err
		}
	}
}

func (s *logScanner) scanBlock() error {
	for pos := 0; pos+logHeader <= len(s.block) && !s.closed; {
		if payload, end, ok := s.chunk(pos); ok {
			if err := s.add(s.block[pos+6], payload); err != nil {
				return err
			}
			pos = end
			continue
		}
		if s.isEnd(pos) {
			s.closed = true
			if s.bad || s.inside {
				s.gaps++
			}
			return nil
		}
		if isZero(s.block[pos:]) && len(s.block)-pos < logHeaderFor {
			return nil // no room for another chunk
		}
		s.bad, s.inside = true, false
		pos = s.next(pos)
	}
	return nil
}

// next is where the next chunk behind pos may begin. Of its first seven bytes, of which
// the last is its kind, one is not zero: a log has long runs of zeroes ahead.
func (s *logScanner) next(pos int) int {
	zeroes := 0
	for _, b := range s.block[pos:] {
		if b != 0 {
			break
		}
		zeroes++
	}
	return max(pos+1, pos+zeroes-6)
}

// chunk reads the chunk at pos, if there is one.
func (s *logScanner) chunk(pos int) (payload []byte, end int, ok bool) {
	b := s.block[pos:]
	kind := b[6]
	header := logHeader
	if kind >= 9 {
		header = logHeaderFor
	}
	end = header + int(binary.LittleEndian.Uint16(b[4:]))
	if kind < 5 || kind > 12 || binary.LittleEndian.Uint32(b[7:]) != s.number || end > len(b) {
		return nil, 0, false
	}
	if pebbleCRC(crc32.Checksum(b[6:end], castagnoli)) != binary.LittleEndian.Uint32(b) {
		return nil, 0, false
	}
	return b[header:end], pos + end, true
}

// add takes the payload of a chunk.
func (s *logScanner) add(kind byte, payload []byte) error {
	if s.bad {
		s.bad = false
		s.gaps++
	}
	const full, first, middle, last = 1, 2, 3, 0
	switch place := kind % 4; place {
	case full, first:
		if s.inside {
			s.gaps++ // the rest of the one before is gone
		}
		s.record, s.inside = append(s.record[:0], payload...), true
		if place == first {
			return nil
		}
	case middle, last:
		if !s.inside {
			return nil // its beginning was in a damaged region
		}
		s.record = append(s.record, payload...)
		if place == middle {
			return nil
		}
	}
	s.inside = false
	return s.emit(s.record)
}

// isEnd reports whether the mark of a log that was closed in order is at pos.
func (s *logScanner) isEnd(pos int) bool {
	b := s.block[pos:]
	return isZero(b[:6]) && b[6] == 5 && binary.LittleEndian.Uint32(b[7:]) == s.number+1
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// pebbleCRC is the form in which Pebble stores a CRC-32C.
func pebbleCRC(c uint32) uint32 { return (c>>15 | c<<17) + 0xa282ead8 }
