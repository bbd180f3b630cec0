package shm

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

const (
	pageSize   = 4096
	slotSize   = 128
	bufferSize = MaxWrite + pageSize
	chunkSize  = 64 << 10

	slotsAt = pageSize

	layoutVersion = 1
)

var magic = binary.LittleEndian.Uint64([]byte("spoolfs\x00"))

// Offsets in the header.
const (
	atMagic      = 0
	atVersion    = 8
	atSlots      = 16
	atBuffer     = 24
	atHeap       = 32
	atSize       = 40
	atSum        = 48
	atEpoch      = 56
	atFlags      = 64
	atCommitted  = 72
	atNodes      = 80
	atStarts     = 88
	atInitLength = 96
	atInit       = 104
	atSnapshots  = 360
	atAlive      = 368
	atStore      = 376
	maxInit      = 256
)

// geometry says where things are.
type geometry struct {
	slots, buffer, heap, size uint64
}

func newGeometry(o Options) geometry {
	g := geometry{slots: uint64(o.Slots), buffer: bufferSize}
	g.heap = roundUp(g.buffersAt()+g.slots*g.buffer, chunkSize)
	g.size = g.heap + roundUp(uint64(o.Heap), chunkSize)
	return g
}

func (g geometry) buffersAt() uint64 { return roundUp(slotsAt+g.slots*slotSize, pageSize) }

func (g geometry) sum() uint64 {
	h := fnv.New64a()
	for _, n := range []uint64{layoutVersion, g.slots, g.buffer, g.heap, g.size} {
		h.Write(binary.LittleEndian.AppendUint64(nil, n))
	}
	return h.Sum64()
}

// check compares the geometry with what this version would make.
func (g geometry) check(size int64) error {
	want := newGeometry(Options{Slots: int(g.slots), Heap: int64(g.size - g.heap)})
	if g.slots == 0 || g.slots > 1<<16 || g.heap > g.size || g != want || uint64(size) < g.size {
		return fmt.Errorf("%w: %d slots, heap %d of %d, file of %d bytes", ErrDamaged, g.slots, g.heap, g.size, size)
	}
	return nil
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }
