package shm

import (
	"fmt"
	"sort"
)

// block is a piece of the heap.
type block struct {
	at   uint64 // offset in the memory
	size int
}

// heap hands out blocks of the memory behind the slots, in chunks of 64 KiB:
// blocks of one size share a chunk, and larger ones take whole chunks.
//
// What is taken is only known here and found again from the records: the memory
// itself says of a chunk no more than whether it holds records, and how large
// they are. This is a byte for each chunk, the index of the size plus 1, in the
// first chunks of the heap.
type heap struct {
	m     *Memory
	first uint64 // offset of chunk 0
	count int    // of chunks

	chunks []chunk       // up to the highest one that was ever used
	spare  []int         // chunks below that which are free, in no order
	idle   int           // how many of those have memory
	open   [2][]openList // by use and size: chunks with free blocks
}

// chunk is what is known of one.
type chunk struct {
	size    int      // of its blocks; 0 if it is free, -1 if it is part of a larger block
	class   int      // index of the size
	used    int      // blocks that are taken, or chunks of a larger block
	taken   []uint64 // a bit for each block
	hint    int      // no block before this word of taken is free
	listed  bool     // in open
	records bool
	touched bool // it has memory though it is free
	spared  bool // in spare
}

// openList lists chunks that may have a free block.
type openList []int

// sizes of blocks, in bytes. The records of a file are about 200 bytes, and most
// files some hundred.
var sizes = []int{64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 32768}

// keptChunks is how many free chunks keep their memory.
const keptChunks = 64

func newHeap(m *Memory) *heap {
	total := (m.size - m.heap) / chunkSize
	mapChunks := (total + chunkSize - 1) / chunkSize
	h := &heap{m: m, first: m.heap + mapChunks*chunkSize, count: int(total - mapChunks)}
	for use := range h.open {
		h.open[use] = make([]openList, len(sizes))
	}
	return h
}

// classOf returns the index of the smallest size that fits.
func classOf(n int) int { return sort.SearchInts(sizes, n) }

// alloc takes a block of at least n bytes.
func (h *heap) alloc(n int, records bool) (block, error) {
	class := classOf(n)
	if class == len(sizes) {
		return h.allocLarge(n)
	}
	use := 0
	if records {
		use = 1
	}
	list := h.open[use][class]
	for len(list) > 0 {
		i := list[len(list)-1]
		if b, ok := h.takeFrom(i); ok {
			h.open[use][class] = list
			return b, nil
		}
		h.chunks[i].listed = false
		list = list[:len(list)-1]
	}
	h.open[use][class] = list
	i, err := h.newChunk(class, records)
	if err != nil {
		return block{}, err
	}
	b, _ := h.takeFrom(i)
	return b, nil
}

// takeFrom takes a free block of a chunk.
func (h *heap) takeFrom(i int) (block, bool) {
	c := &h.chunks[i]
	n := chunkSize / max(c.size, 1)
	if c.size <= 0 || c.used == n {
		return block{}, false
	}
	for ; c.hint < len(c.taken); c.hint++ {
		word := c.taken[c.hint]
		for bit := 0; word != ^uint64(0) && bit < 64; bit++ {
			k := c.hint*64 + bit
			if word&(1<<bit) == 0 && k < n {
				c.taken[c.hint] |= 1 << bit
				c.used++
				return block{h.at(i) + uint64(k*c.size), c.size}, true
			}
		}
	}
	return block{}, false
}

func (h *heap) at(chunk int) uint64 { return h.first + uint64(chunk)*chunkSize }

// newChunk makes a chunk for blocks of a size.
func (h *heap) newChunk(class int, records bool) (int, error) {
	i, err := h.freeChunk()
	if err != nil {
		return 0, err
	}
	h.format(i, class, records)
	return i, nil
}

// format makes blocks of a chunk. Records must be seen as free ones, before the
// memory says that there are some.
func (h *heap) format(i, class int, records bool) {
	c := &h.chunks[i]
	n := chunkSize / sizes[class]
	if c.touched {
		h.idle--
	}
	*c = chunk{size: sizes[class], class: class, taken: make([]uint64, (n+63)/64), listed: true, records: records, spared: c.spared}
	use := 0
	if records {
		use = 1
		for k := range n {
			h.m.word(h.at(i) + uint64(k*c.size)).Store(0)
		}
		h.m.data[h.m.heap+uint64(i)] = byte(class + 1)
	}
	h.open[use][class] = append(h.open[use][class], i)
}

// freeChunk takes a free chunk.
func (h *heap) freeChunk() (int, error) {
	for n := len(h.spare); n > 0; n = len(h.spare) {
		i := h.spare[n-1]
		h.spare = h.spare[:n-1]
		h.chunks[i].spared = false
		if h.chunks[i].size == 0 {
			return i, nil
		}
	}
	if len(h.chunks) == h.count {
		return 0, fmt.Errorf("%w: %d chunks", ErrFull, h.count)
	}
	h.chunks = append(h.chunks, chunk{})
	return len(h.chunks) - 1, nil
}

// allocLarge takes whole chunks.
func (h *heap) allocLarge(n int) (block, error) {
	k := (n + chunkSize - 1) / chunkSize
	run := 0
	for i := range h.chunks {
		if h.chunks[i].size != 0 {
			run = 0
			continue
		}
		if run++; run == k {
			return h.takeRun(i-k+1, k), nil
		}
	}
	if len(h.chunks)-run+k > h.count {
		return block{}, fmt.Errorf("%w: %d chunks in a row", ErrFull, k)
	}
	from := len(h.chunks) - run
	for len(h.chunks) < from+k {
		h.chunks = append(h.chunks, chunk{})
	}
	return h.takeRun(from, k), nil
}

func (h *heap) takeRun(from, k int) block {
	for i := from; i < from+k; i++ {
		if h.chunks[i].touched {
			h.idle--
		}
		h.chunks[i] = chunk{size: -1, used: k, spared: h.chunks[i].spared}
	}
	return block{h.at(from), k * chunkSize}
}

// free gives a block back.
func (h *heap) free(b block) {
	i := int((b.at - h.first) / chunkSize)
	c := &h.chunks[i]
	if c.size < 0 {
		h.freeRun(i, b.size/chunkSize)
		return
	}
	k := int(b.at-h.at(i)) / c.size
	c.taken[k/64] &^= 1 << (k % 64)
	c.used--
	c.hint = min(c.hint, k/64)
	use := 0
	if c.records {
		use = 1
	}
	if !c.listed {
		c.listed = true
		h.open[use][c.class] = append(h.open[use][c.class], i)
	}
	// The last open chunk of a size stays, so that it does not come and go.
	if c.used == 0 && len(h.open[use][c.class]) > 1 {
		h.dropChunk(i, use)
	}
}

// dropChunk frees a chunk without blocks that are taken.
func (h *heap) dropChunk(i, use int) {
	c := &h.chunks[i]
	list := h.open[use][c.class]
	for at := range list {
		if list[at] == i {
			list[at] = list[len(list)-1]
			h.open[use][c.class] = list[:len(list)-1]
			break
		}
	}
	if c.records {
		h.m.data[h.m.heap+uint64(i)] = 0
	}
	h.freeRun(i, 1)
}

// freeRun frees chunks, and gives their memory back to the system if enough are
// free.
func (h *heap) freeRun(from, k int) {
	keep := h.idle+k <= keptChunks
	for i := from; i < from+k; i++ {
		spared := h.chunks[i].spared
		h.chunks[i] = chunk{touched: keep, spared: true}
		if !spared {
			h.spare = append(h.spare, i)
		}
	}
	if keep {
		h.idle += k
	} else {
		_ = h.m.punch(h.at(from), k*chunkSize) // or it stays as it is
	}
}

// eachRecordBlock calls f for all blocks of records, taken or not, and takes
// none. It makes the chunks known.
func (h *heap) eachRecordBlock(f func(block) error) error {
	last, err := h.lastRecordChunk()
	if err != nil {
		return err
	}
	for i := 0; i <= last; i++ {
		for len(h.chunks) <= i {
			h.chunks = append(h.chunks, chunk{})
		}
		class := int(h.m.data[h.m.heap+uint64(i)]) - 1
		if class < 0 {
			h.chunks[i].spared = true
			h.spare = append(h.spare, i)
			continue
		}
		if class >= len(sizes) {
			return fmt.Errorf("%w: chunk %d of kind %d", ErrDamaged, i, class)
		}
		size := sizes[class]
		n := chunkSize / size
		h.chunks[i] = chunk{size: size, class: class, taken: make([]uint64, (n+63)/64), listed: true, records: true}
		h.open[1][class] = append(h.open[1][class], i)
		for k := range n {
			if err := f(block{h.at(i) + uint64(k*size), size}); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastRecordChunk is the highest chunk that holds records; -1 if none does. Pages
// of the map that were never written to are skipped: to read them would make them.
func (h *heap) lastRecordChunk() (int, error) {
	last := -1
	for at := 0; at < h.count; at += pageSize {
		next, err := h.m.nextWritten(h.m.heap + uint64(at))
		if err != nil || next >= h.m.heap+uint64(h.count) {
			return last, err
		}
		at = int(next-h.m.heap) / pageSize * pageSize
		page := h.m.data[h.m.heap+uint64(at) : h.m.heap+uint64(min(at+pageSize, h.count))]
		for i, class := range page {
			if class != 0 {
				last = at + i
			}
		}
	}
	return last, nil
}

// canClaim reports whether a block is one that alloc could have given, and is
// free.
func (h *heap) canClaim(b block) bool {
	end := h.first + uint64(h.count)*chunkSize
	if b.size <= 0 || b.at < h.first || b.at >= end || uint64(b.size) > end-b.at {
		return false
	}
	i := int((b.at - h.first) / chunkSize)
	class := classOf(b.size)
	if class == len(sizes) {
		return b.size%chunkSize == 0 && b.at == h.at(i) && h.allFree(i, b.size/chunkSize)
	}
	off := int(b.at - h.at(i))
	if sizes[class] != b.size || off%b.size != 0 || off+b.size > chunkSize {
		return false
	}
	if i >= len(h.chunks) || h.chunks[i].size == 0 {
		return true
	}
	c, k := &h.chunks[i], off/b.size
	return c.size == b.size && !c.records && c.taken[k/64]&(1<<(k%64)) == 0
}

func (h *heap) allFree(from, k int) bool {
	for i := from; i < min(from+k, len(h.chunks)); i++ {
		if h.chunks[i].size != 0 {
			return false
		}
	}
	return true
}

// claim takes a certain block.
func (h *heap) claim(b block) {
	i := int((b.at - h.first) / chunkSize)
	k := max(1, b.size/chunkSize)
	for len(h.chunks) < i+k {
		h.spare = append(h.spare, len(h.chunks))
		h.chunks = append(h.chunks, chunk{spared: true})
	}
	class := classOf(b.size)
	if class == len(sizes) {
		h.takeRun(i, k)
		return
	}
	c := &h.chunks[i]
	if c.size == 0 {
		h.format(i, class, false)
	}
	n := int(b.at-h.at(i)) / c.size
	c.taken[n/64] |= 1 << (n % 64)
	c.used++
}
