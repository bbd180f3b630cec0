package queue

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableReader reads the entries of a table of Pebble block by block, and passes
// over blocks that are damaged.
type tableReader struct {
	name     string
	number   uint64
	readable io.ReaderAt
	reader   *sstable.Reader // nil if the index of the table is damaged
	file     vfs.File
	size     int64

	blocks []block.Handle
	schema colblk.KeySchema
	iter   colblk.DataBlockIter
	inside bool

	tombstones []tombstone
	damaged    uint64 // what could not be read so far
}

// openTable opens a table. The error is that of the disk, or says that it is no
// table at all.
func (l *listing) openTable(number uint64, name string) (*tableReader, error) {
	file, err := l.fs.Open(l.path(name))
	if err != nil {
		return nil, err
	}
	t := &tableReader{name: name, number: number, file: file, readable: file}
	if info, err := file.Stat(); err != nil {
		return nil, errors.Join(err, file.Close())
	} else {
		t.size = info.Size()
	}
	t.schema = colblk.DefaultKeySchema(pebble.DefaultComparer, 16)
	t.iter.InitOnce(&t.schema, pebble.DefaultComparer, noValues{})
	err = guarded(t.openIndex)
	if err != nil && ofSystem(err) {
		return nil, errors.Join(err, t.close())
	}
	if err != nil {
		t.damaged++
		if err := t.findBlocks(); err != nil {
			return nil, errors.Join(err, t.close())
		}
	}
	return t, nil
}

// noValues stands where values lie outside of their blocks, which this program
// does not ask for. Only what is older than the newest version may be there.
type noValues struct {
	block.GetInternalValueForPrefixAndValueHandler
}

// openIndex reads where the blocks of the table lie.
func (t *tableReader) openIndex() error {
	readable, err := sstable.NewSimpleReadable(keepOpen{t.file})
	if err != nil {
		return err
	}
	o := &pebble.Options{Logger: silentLogger{}}
	o.EnsureDefaults()
	if t.reader, err = sstable.NewReader(context.Background(), readable, o.MakeReaderOptions()); err != nil {
		return err
	}
	layout, err := t.reader.Layout()
	if err != nil {
		return errors.Join(err, t.closeReader())
	}
	for _, h := range layout.Data {
		t.blocks = append(t.blocks, h.Handle)
	}
	err = guarded(t.readTombstones)
	if err != nil && !ofSystem(err) {
		t.damaged++
		err = nil
	}
	return err
}

// keepOpen leaves the file to its owner.
type keepOpen struct{ vfs.File }

func (keepOpen) Close() error { return nil }

func (t *tableReader) readTombstones() error {
	it, err := t.reader.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if err != nil || it == nil {
		return err
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil && err == nil; span, err = it.Next() {
		for _, k := range span.Keys {
			t.tombstones = append(t.tombstones, tombstone{slices.Clone(span.Start), slices.Clone(span.End), age{uint64(k.SeqNum()), t.number}})
		}
	}
	return err
}

// findBlocks finds the blocks of a table without its index: they lie one behind
// the other from its beginning on, each with a checksum. What is behind the
// first damaged block is lost.
func (t *tableReader) findBlocks() error {
	t.blocks = nil
	b := make([]byte, min(t.size, 256<<20))
	if _, err := t.readable.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	start, sum := 0, uint32(0)
	for pos := 0; pos+block.TrailerLen <= len(b); pos++ {
		// b[pos] is the kind of compression, if the block ends here.
		with := crc32.Update(sum, castagnoli, b[pos:pos+1])
		stored := uint32(b[pos+1]) | uint32(b[pos+2])<<8 | uint32(b[pos+3])<<16 | uint32(b[pos+4])<<24
		if pos > start && pebbleCRC(with) == stored {
			h := block.Handle{Offset: uint64(start), Length: uint64(pos - start)}
			if guarded(func() error { return t.enter(h) }) != nil || !t.hasRow() {
				break // the index, or garbage
			}
			t.blocks = append(t.blocks, h)
			start, sum = pos+block.TrailerLen, 0
			pos = start - 1
			continue
		}
		if pos-start > maxTableBlock {
			break
		}
		sum = with
	}
	t.inside = false
	if len(t.blocks) == 0 {
		return fmt.Errorf("%w: %s is no table", errDamaged, t.name)
	}
	return nil
}

// maxTableBlock is more than any block of a table has, compressed.
const maxTableBlock = 64 << 20

// hasRow reports whether the block that was entered begins with one of our rows.
func (t *tableReader) hasRow() bool {
	v, ok := t.step(true)
	return ok && wellFormed(v.key)
}

// step moves to the first or the next entry of the block. It passes over what
// cannot be decoded.
func (t *tableReader) step(first bool) (v version, ok bool) {
	for ; ; first = false {
		err := guarded(func() error {
			next := t.iter.Next
			if first {
				next = t.iter.First
			}
			kv := next()
			if ok = kv != nil; ok {
				v = version{kv.K.UserKey, age{uint64(kv.K.SeqNum()), t.number}, kv.K.Kind(), kv.InPlaceValue()}
			}
			return nil
		})
		if err == nil {
			return v, ok
		}
	}
}

// enter begins a block.
func (t *tableReader) enter(h block.Handle) error {
	raw := make([]byte, h.Length+block.TrailerLen)
	if _, err := t.readable.ReadAt(raw, int64(h.Offset)); err != nil {
		return err
	}
	if err := block.ValidateChecksum(block.ChecksumTypeCRC32c, raw, h); err != nil {
		return err
	}
	data, compression := raw[:h.Length:h.Length], block.CompressionIndicator(raw[h.Length])
	if compression != block.NoCompressionIndicator {
		n, err := block.DecompressedLen(compression, data)
		if err != nil {
			return err
		}
		plain := make([]byte, n)
		if err := block.DecompressInto(compression, data, plain); err != nil {
			return err
		}
		data = plain
	}
	var decoder colblk.DataBlockDecoder
	decoder.Init(&t.schema, data)
	return t.iter.Init(&decoder, block.IterTransforms{})
}

// next returns the next entry, in the order of the keys, newest version first.
// An error is one of the disk.
func (t *tableReader) next() (version, bool, error) {
	for {
		if t.inside {
			if v, ok := t.step(false); ok {
				return v, true, nil
			}
			t.inside = false
		}
		if len(t.blocks) == 0 {
			return version{}, false, nil
		}
		h := t.blocks[0]
		t.blocks = t.blocks[1:]
		if err := guarded(func() error { return t.enter(h) }); err != nil {
			if ofSystem(err) {
				return version{}, false, err
			}
			t.damaged++
			continue
		}
		t.inside = true
		if v, ok := t.step(true); ok {
			return v, true, nil
		}
	}
}

func (t *tableReader) closeReader() error {
	if t.reader == nil {
		return nil
	}
	r := t.reader
	t.reader = nil
	return r.Close()
}

func (t *tableReader) close() error { return errors.Join(t.closeReader(), t.file.Close()) }
