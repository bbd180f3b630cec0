package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Resent is the bit of a request's unique that says that the kernel has sent it
// before. The answer has it, too.
const Resent = 1 << 63

// Slot is where a request is from the time it is read until it is answered. One
// goroutine owns it; others may look at it.
type Slot struct {
	m      *Memory
	at     uint64
	from   uint64 // where the buffer is
	buffer []byte
}

// Offsets in a slot.
const (
	slotState       = 0
	slotUnique      = 8
	slotWho         = 16
	slotBegan       = 24
	slotWaits       = 32
	slotLength      = 40
	slotTransaction = 48
	slotFor         = 56
	slotStatus      = 64
	slotValue       = 72
)

// The states of a slot.
const (
	stateFree = iota
	stateReading
	stateInHand
)

// The head of a request, as the kernel writes it.
const (
	requestLength = 0
	requestOpcode = 4
	requestUnique = 8
	requestPID    = 32
	requestHead   = 40
)

// Slots is how many slots there are.
func (m *Memory) Slots() int { return int(m.slots) }

// Slot returns a slot by its index.
func (m *Memory) Slot(i int) *Slot {
	from := m.buffersAt() + uint64(i)*m.buffer
	return &Slot{m: m, at: slotsAt + uint64(i)*slotSize, from: from, buffer: m.data[from : from+m.buffer : from+m.buffer]}
}

// Buffer is what a request is read into.
func (s *Slot) Buffer() []byte { return s.buffer }

// Populate makes the buffer resident: if a process is killed while the kernel
// copies a request into a page that is not there, the writer gets an error. The
// error says that the pages could not be locked, and may be swapped out.
func (s *Slot) Populate() error {
	if err := unix.Madvise(s.buffer, unix.MADV_POPULATE_WRITE); err != nil {
		for i := 0; i < len(s.buffer); i += pageSize { // before Linux 5.14
			s.buffer[i] = 0
		}
	}
	if err := unix.Mlock(s.buffer); err != nil {
		return fmt.Errorf("lock buffer in memory: %w", err)
	}
	return nil
}

// Depopulate gives the memory of the buffer back to the system.
func (s *Slot) Depopulate() error {
	s.m.word(s.at + slotState).Store(stateFree)
	return errors.Join(unix.Munlock(s.buffer), s.m.punch(s.from, len(s.buffer)))
}

// punch gives memory back to the system. It reads as zeroes afterwards.
func (m *Memory) punch(at uint64, n int) error {
	err := unix.Fallocate(m.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(at), int64(n))
	if err != nil {
		return fmt.Errorf("give back shared memory: %w", err)
	}
	return nil
}

// nextWritten is the first offset, from one on, that was ever written to; that of
// the end if there is none.
func (m *Memory) nextWritten(from uint64) (uint64, error) {
	at, err := unix.Seek(m.fd, int64(from), unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return m.size, nil
	case err != nil:
		return 0, fmt.Errorf("look for what is written in shared memory: %w", err)
	}
	return uint64(at), nil
}

// Reading says that the slot is about to be read into. What was in it is gone.
func (s *Slot) Reading() {
	s.m.word(s.at + slotTransaction).Store(0)
	binary.LittleEndian.PutUint32(s.buffer[requestLength:], 0)
	s.m.word(s.at + slotState).Store(stateReading)
}

// Begin says that a request of n bytes has been read.
func (s *Slot) Begin(n int) Request {
	r := parseRequest(s.buffer[:n])
	r.Began = time.Duration(s.m.clock())
	s.m.word(s.at + slotUnique).Store(binary.LittleEndian.Uint64(s.buffer[requestUnique:]))
	s.m.word(s.at + slotWho).Store(uint64(r.Opcode) | uint64(r.PID)<<32)
	s.m.word(s.at + slotBegan).Store(uint64(r.Began))
	s.m.word(s.at + slotWaits).Store(0)
	s.m.word(s.at + slotLength).Store(uint64(n))
	s.m.word(s.at + slotState).Store(stateInHand)
	return r
}

// Drop frees a slot, after the death of its worker, whose request has been
// answered otherwise.
func (m *Memory) Drop(i int) { m.Slot(i).End() }

// End says that the request has been answered.
func (s *Slot) End() { s.m.word(s.at + slotState).Store(stateFree) }

// Wait says that the request waits for the disk, until Go is called as often.
func (s *Slot) Wait() { s.m.word(s.at + slotWaits).Add(1) }

// Go says that it goes on.
func (s *Slot) Go() {
	s.m.word(s.at + slotBegan).Store(uint64(s.m.clock()))
	s.m.word(s.at + slotWaits).Add(^uint64(0))
}

// setOutcome says how the request ends if a transaction counts.
func (s *Slot) setOutcome(txn uint64, o outcome) {
	s.m.word(s.at + slotTransaction).Store(0)
	s.m.word(s.at + slotFor).Store(o.unique)
	s.m.word(s.at + slotStatus).Store(o.status)
	s.m.word(s.at + slotValue).Store(o.value)
	s.m.word(s.at + slotTransaction).Store(txn)
}

// Unique is that of the request in hand; 0 if there is none.
func (s *Slot) Unique() uint64 {
	if s.m.word(s.at+slotState).Load() != stateInHand {
		return 0
	}
	return s.m.word(s.at+slotUnique).Load() &^ Resent
}

// Request is what is known of a request without understanding it.
type Request struct {
	Slot   int
	Unique uint64 // without Resent
	Resent bool
	Opcode uint32
	PID    uint32 // the thread that waits for it, 0 if it cannot be seen
	Length int

	// Began is when it was read, or when its last wait for the disk ended, by the
	// clock of the memory; 0 if nobody has begun it. Waits says that it waits for
	// the disk now.
	Began time.Duration
	Waits bool
}

func parseRequest(b []byte) Request {
	unique := binary.LittleEndian.Uint64(b[requestUnique:])
	return Request{
		Unique: unique &^ Resent,
		Resent: unique&Resent != 0,
		Opcode: binary.LittleEndian.Uint32(b[requestOpcode:]),
		PID:    binary.LittleEndian.Uint32(b[requestPID:]),
		Length: len(b),
	}
}

// InHand lists the requests that have been read and not answered, as far as the
// worker knew: after its death one of them may have been answered, and one that
// was read at that moment is listed, too.
func (m *Memory) InHand() []Request {
	var list []Request
	for i := range m.Slots() {
		at := slotsAt + uint64(i)*slotSize
		if r, ok := m.request(i, at); ok {
			list = append(list, r)
		}
	}
	return list
}

func (m *Memory) request(i int, at uint64) (Request, bool) {
	switch m.word(at + slotState).Load() {
	case stateReading:
		// The kernel may have put a request there that nobody has seen.
		head := m.Slot(i).buffer
		n := binary.LittleEndian.Uint32(head[requestLength:])
		if n < requestHead || uint64(n) > m.buffer {
			return Request{}, false
		}
		r := parseRequest(head[:n])
		r.Slot = i
		return r, true
	case stateInHand:
		who, unique := m.word(at+slotWho).Load(), m.word(at+slotUnique).Load()
		return Request{
			Slot: i, Unique: unique &^ Resent, Resent: unique&Resent != 0, Opcode: uint32(who), PID: uint32(who >> 32),
			Length: int(min(m.word(at+slotLength).Load(), m.buffer)),
			Began:  time.Duration(m.word(at + slotBegan).Load()),
			Waits:  m.word(at+slotWaits).Load() != 0,
		}, true
	}
	return Request{}, false
}
