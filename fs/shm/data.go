package shm

import "fmt"

// Data is a piece of the heap that belongs to a record of its owner, which says
// where it is. What no record says belongs to nobody when the table is opened.
type Data struct {
	At   uint64
	Size int // in bytes; 0 is no data
}

// NewData takes at least size bytes. What is in them is not said.
func (t *Table) NewData(size int) (Data, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, err := t.heap.alloc(size, false)
	return Data{b.at, b.size}, err
}

// FreeData gives up data that no record has ever named.
func (t *Table) FreeData(d Data) {
	if d.Size == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heap.free(block{d.At, d.Size})
}

// Claim takes the data that a record of a former process names.
func (t *Table) Claim(d Data) error {
	if d.Size == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.heap.canClaim(block{d.At, d.Size}) {
		return fmt.Errorf("%w: data of %d bytes at %d", ErrDamaged, d.Size, d.At)
	}
	t.heap.claim(block{d.At, d.Size})
	return nil
}

// Bytes is the data. It must not be used after it was given up.
func (t *Table) Bytes(d Data) []byte {
	return t.m.data[d.At : d.At+uint64(d.Size) : d.At+uint64(d.Size)]
}
