package shm

import "fmt"

// MaxWrite is the largest WRITE and READ request in bytes. The mount negotiates
// it with the kernel, so that a request with its header fits a buffer.
const MaxWrite = 128 << 10

// Options of a new memory.
type Options struct {
	// Slots is how many requests can be in hand at a time. Only those that are
	// used take memory. Default 1,024.
	Slots int

	// Heap bounds records and file bytes together, in bytes. It is address space:
	// only what is used takes memory. Default 64 GiB.
	Heap int64
}

func (o *Options) ensureDefaults() {
	if o.Slots == 0 {
		o.Slots = 1024
	}
	if o.Heap == 0 {
		o.Heap = 64 << 30
	}
}

func (o *Options) validate() error {
	if o.Slots < 1 || o.Slots > 1<<16 || o.Heap < chunkSize || o.Heap > 1<<44 {
		return fmt.Errorf("shared memory with %d slots and %d bytes: out of range", o.Slots, o.Heap)
	}
	return nil
}
