package fs

import (
	"slices"
	"sync"
	"sync/atomic"

	"spoolfs/fs/shm"
)

// hand is a slot with the request that is in it.
type hand struct {
	index   int
	slot    *shm.Slot
	request shm.Request
	inline  bool // a reader handles it itself
	alone   bool // no other may be in hand

	// resident says that the buffer is in memory to stay.
	resident bool

	// promise is an answer that nobody waits to give; nil if there is none. Who takes
	// it away answers, in head.
	promise atomic.Pointer[promise]
	head    [replyHead]byte
}

// slotPool hands out the slots of a memory. Those that were used last come first,
// so that as few as can be take memory.
type slotPool struct {
	memory *shm.Memory

	// most is how many slots were in use at a time.
	most atomic.Int64

	mu    sync.Mutex
	given *sync.Cond
	free  []*hand
	spare int                    // how few were free at a time, since the last trim
	all   []atomic.Pointer[hand] // by index; nil if it was never taken
}

// keptSlots is how many slots stay in memory though nobody needs them.
const keptSlots = 32

func newSlotPool(m *shm.Memory) *slotPool {
	p := &slotPool{memory: m, all: make([]atomic.Pointer[hand], m.Slots())}
	p.given = sync.NewCond(&p.mu)
	return p
}

// take returns a free slot, and waits for one if need be; before that it calls waits.
func (p *slotPool) take(waits func()) *hand {
	h := p.takeFree(waits)
	if !h.resident {
		// Where it cannot be locked it is there all the same, unless memory gets
		// short.
		_ = h.slot.Populate()
		h.resident = true
	}
	return h
}

func (p *slotPool) takeFree(waits func()) *hand {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if n := len(p.free); n > 0 {
			h := p.free[n-1]
			p.free = p.free[:n-1]
			p.spare = min(p.spare, n-1)
			return h
		}
		if i := int(p.most.Load()); i < len(p.all) {
			h := &hand{index: i, slot: p.memory.Slot(i)}
			p.all[i].Store(h)
			p.most.Store(int64(i) + 1)
			return h
		}
		waits()
		p.given.Wait()
	}
}

// hold returns a certain slot, which take hands out later.
func (p *slotPool) hold(i int) *hand {
	p.mu.Lock()
	defer p.mu.Unlock()
	for j := int(p.most.Load()); j <= i; j++ {
		h := &hand{index: j, slot: p.memory.Slot(j)}
		p.all[j].Store(h)
		p.free = append(p.free, h)
		p.most.Store(int64(j) + 1)
	}
	return p.all[i].Load()
}

// give returns a slot. It stays in memory: to give that back and to get it anew
// costs more than all the rest of a request.
func (p *slotPool) give(h *hand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, h)
	p.given.Signal()
}

// trim gives back the memory of slots that nobody has needed since the last trim.
func (p *slotPool) trim() {
	for _, h := range p.takeSpare() {
		_ = h.slot.Depopulate() // or it stays in memory
		h.resident = false
		p.giveLast(h)
	}
}

// takeSpare takes the slots in memory that were not needed, but for some.
func (p *slotPool) takeSpare() []*hand {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.spare - keptSlots
	p.spare = len(p.free)
	var spare, free []*hand
	for i, h := range p.free {
		if i < n && h.resident {
			spare = append(spare, h)
		} else {
			free = append(free, h)
		}
	}
	if spare != nil {
		p.free, p.spare = free, len(free)
	}
	return spare
}

// giveLast returns a slot that is to be taken after all others.
func (p *slotPool) giveLast(h *hand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = slices.Insert(p.free, 0, h)
	p.given.Signal()
}

// find returns the slot of a request.
func (p *slotPool) find(unique uint64) *hand {
	for i := range p.most.Load() {
		if h := p.all[i].Load(); h != nil && h.slot.Unique() == unique {
			return h
		}
	}
	return nil
}
