package shm

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// Kind is the kind of a record, up to 254. What it means is the owner's business.
type Kind uint8

// Key names a record.
type Key struct {
	Kind Kind
	ID   uint64
}

// Table holds records in the heap of a memory. Several changes of it can be one:
// the next process sees all of a Change or nothing.
//
// A record is in a block of the heap:
//
//	0   transaction  that wrote it; 0 if the block is free
//	8   kind, length of the content: 1 byte and 4
//	16  id
//	24  content
//
// A change writes new records and then the number of its transaction into the
// header. Of two records with one key the one with the higher number counts, and
// none with a number that is higher than the header's. Records of the kind
// "gone" list the keys that a transaction has deleted.
//
// One process at a time has a table.
type Table struct {
	m    *Memory
	heap *heap

	// step, if not nil, is called between any two stores, in tests.
	step func()

	mu      sync.Mutex
	records map[Kind]map[uint64]block
}

// OnStep has a function called between any two stores of a change, in tests: there
// is where a process can die.
func (t *Table) OnStep(f func()) { t.step = f }

func (t *Table) stepped() {
	if t.step != nil {
		t.step()
	}
}

const (
	recordHead = 24
	kindGone   = 255
	keySize    = 16
)

// maxRecord is the largest content of a record in bytes.
const maxRecord = 16 << 10

// OpenTable opens the table of a memory, and takes back what was not finished.
// Blocks of data belong to nobody until they are claimed.
func OpenTable(m *Memory) (*Table, error) {
	t := &Table{m: m, heap: newHeap(m), records: map[Kind]map[uint64]block{}}
	if err := t.load(); err != nil {
		return nil, err
	}
	return t, nil
}

// load finds the records that count, and frees all others.
func (t *Table) load() error {
	t.dropOutcomes()
	var gone, stale []block
	committed := t.m.word(atCommitted).Load()
	err := t.heap.eachRecordBlock(func(b block) error {
		txn := t.m.word(b.at).Load()
		switch {
		case txn == 0:
			return nil
		case txn > committed:
			t.m.word(b.at).Store(0) // it was not finished
			return nil
		}
		key, length := t.head(b)
		if length > uint64(b.size)-recordHead || key.Kind == 0 {
			return fmt.Errorf("%w: a record of %d bytes, kind %d, in a block of %d", ErrDamaged, length, key.Kind, b.size)
		}
		t.heap.claim(b)
		switch old, ok := t.records[key.Kind][key.ID]; {
		case key.Kind == kindGone:
			gone = append(gone, b)
		case !ok:
			t.put(key, b)
		case t.m.word(old.at).Load() < txn:
			t.put(key, b)
			stale = append(stale, old)
		default:
			stale = append(stale, b)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, b := range stale {
		t.wipe(b)
	}
	for _, b := range gone {
		t.finishGone(b)
	}
	return nil
}

// put says where a record is.
func (t *Table) put(key Key, b block) {
	records := t.records[key.Kind]
	if records == nil {
		records = map[uint64]block{}
		t.records[key.Kind] = records
	}
	records[key.ID] = b
}

// dropOutcomes forgets those of transactions that do not count: their numbers
// are given out again.
func (t *Table) dropOutcomes() {
	committed := t.m.word(atCommitted).Load()
	for i := range t.m.Slots() {
		at := slotsAt + uint64(i)*slotSize + slotTransaction
		if t.m.word(at).Load() > committed {
			t.m.word(at).Store(0)
		}
	}
}

// Outcome is how a request has ended that is still in its slot, perhaps without
// having been answered.
type Outcome struct {
	Slot   int
	Unique uint64 // without Resent
	Status int32
	Value  uint64
}

// Outcomes lists those of the requests that are in hand.
func (t *Table) Outcomes() []Outcome {
	var list []Outcome
	for _, r := range t.m.InHand() {
		at := slotsAt + uint64(r.Slot)*slotSize
		if t.m.word(at+slotTransaction).Load() != 0 && t.m.word(at+slotFor).Load() == r.Unique {
			list = append(list, Outcome{
				r.Slot, r.Unique, int32(uint32(t.m.word(at + slotStatus).Load())), t.m.word(at + slotValue).Load(),
			})
		}
	}
	return list
}

func (t *Table) head(b block) (Key, uint64) {
	w := t.m.word(b.at + 8).Load()
	return Key{Kind(w), t.m.word(b.at + 16).Load()}, w >> 8
}

// wipe frees the block of a record that does not count any more.
func (t *Table) wipe(b block) {
	t.stepped()
	t.m.word(b.at).Store(0)
	t.heap.free(b)
}

// finishGone deletes what a transaction has deleted and may not have got to.
func (t *Table) finishGone(b block) {
	txn := t.m.word(b.at).Load()
	_, length := t.head(b)
	content := t.content(b, length)
	for ; len(content) >= keySize; content = content[keySize:] {
		key := Key{Kind(binary.LittleEndian.Uint64(content)), binary.LittleEndian.Uint64(content[8:])}
		if old, ok := t.records[key.Kind][key.ID]; ok && t.m.word(old.at).Load() < txn {
			t.wipe(old)
			delete(t.records[key.Kind], key.ID)
		}
	}
	t.wipe(b)
}

func (t *Table) content(b block, length uint64) []byte {
	return t.m.data[b.at+recordHead : b.at+recordHead+length]
}

// Len is the number of records.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, records := range t.records {
		n += len(records)
	}
	return n
}

// Each calls f for the records of a kind, in no order. The content is f's until
// it returns. f must not use the table.
func (t *Table) Each(kind Kind, f func(id uint64, content []byte) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, b := range t.records[kind] {
		_, length := t.head(b)
		if err := f(id, t.content(b, length)); err != nil {
			return err
		}
	}
	return nil
}

// Change is what is to be changed at once.
type Change struct {
	sets    []set
	buf     []byte
	deletes []Key
	frees   []Data
	slots   []outcome
}

type set struct {
	key      Key
	from, to int // in buf
}

type outcome struct {
	slot          *Slot
	unique        uint64
	status, value uint64
}

// Set writes a record; append adds its content to what it is given.
func (c *Change) Set(key Key, content func([]byte) []byte) {
	from := len(c.buf)
	c.buf = content(c.buf)
	c.sets = append(c.sets, set{key, from, len(c.buf)})
}

// Delete deletes a record, if it is there.
func (c *Change) Delete(key Key) { c.deletes = append(c.deletes, key) }

// Free gives up data, once the change counts.
func (c *Change) Free(d Data) {
	if d.Size > 0 {
		c.frees = append(c.frees, d)
	}
}

// Outcome says how the request in a slot has ended.
func (c *Change) Outcome(s *Slot, unique uint64, status int32, value uint64) {
	c.slots = append(c.slots, outcome{s, unique &^ Resent, uint64(uint32(status)), value})
}

// IsEmpty reports whether there is nothing to change.
func (c *Change) IsEmpty() bool {
	return len(c.sets)+len(c.deletes)+len(c.frees)+len(c.slots) == 0
}

// Reset makes the change an empty one, which keeps its memory.
func (c *Change) Reset() {
	c.sets, c.buf, c.deletes, c.frees, c.slots = c.sets[:0], c.buf[:0], c.deletes[:0], c.frees[:0], c.slots[:0]
}

// Commit makes a change. If there is no room for it nothing is changed (ErrFull).
func (t *Table) Commit(c *Change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	txn := t.m.word(atCommitted).Load() + 1
	blocks, err := t.write(c, txn)
	if err != nil {
		return err
	}
	for _, o := range c.slots {
		t.stepped()
		o.slot.setOutcome(txn, o)
	}
	t.stepped()
	t.m.word(atCommitted).Store(txn) // from here on it counts
	t.finish(c, blocks)
	return nil
}

// write writes the records of a change, which do not count yet. The last block
// lists what is gone, if anything is.
func (t *Table) write(c *Change, txn uint64) ([]block, error) {
	blocks := make([]block, 0, 8)
	undo := func(err error) ([]block, error) {
		for _, b := range blocks {
			t.wipe(b)
		}
		return nil, err
	}
	for _, s := range c.sets {
		b, err := t.record(s.key, c.buf[s.from:s.to], txn)
		if err != nil {
			return undo(err)
		}
		blocks = append(blocks, b)
	}
	for rest := t.existing(c.deletes); len(rest) > 0; {
		n := min(len(rest), maxRecord/keySize)
		var list []byte
		for _, key := range rest[:n] {
			list = binary.LittleEndian.AppendUint64(list, uint64(key.Kind))
			list = binary.LittleEndian.AppendUint64(list, key.ID)
		}
		rest = rest[n:]
		b, err := t.record(Key{Kind: kindGone}, list, txn)
		if err != nil {
			return undo(err)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func (t *Table) existing(keys []Key) []Key {
	var list []Key
	for _, key := range keys {
		if _, ok := t.records[key.Kind][key.ID]; ok {
			list = append(list, key)
		}
	}
	return list
}

// record writes a record. Its transaction is the last thing that is written.
func (t *Table) record(key Key, content []byte, txn uint64) (block, error) {
	if len(content) > maxRecord {
		return block{}, fmt.Errorf("%w: record of %d bytes, at most %d", ErrFull, len(content), maxRecord)
	}
	b, err := t.heap.alloc(recordHead+len(content), true)
	if err != nil {
		return b, err
	}
	t.stepped()
	copy(t.m.data[b.at+recordHead:], content)
	t.m.word(b.at + 16).Store(key.ID)
	t.stepped()
	t.m.word(b.at + 8).Store(uint64(key.Kind) | uint64(len(content))<<8)
	t.stepped()
	t.m.word(b.at).Store(txn)
	return b, nil
}

// finish frees what a change that counts has replaced. The lists of what is gone
// go last.
func (t *Table) finish(c *Change, blocks []block) {
	for i, s := range c.sets {
		if old, ok := t.records[s.key.Kind][s.key.ID]; ok {
			t.wipe(old)
		}
		t.put(s.key, blocks[i])
	}
	for _, key := range c.deletes {
		if old, ok := t.records[key.Kind][key.ID]; ok {
			t.wipe(old)
			delete(t.records[key.Kind], key.ID)
		}
	}
	for _, b := range blocks[len(c.sets):] {
		t.wipe(b)
	}
	for _, d := range c.frees {
		t.heap.free(block{d.At, d.Size})
	}
}
