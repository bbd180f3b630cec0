package shm

import (
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is a mapped shared memory. Its methods may be called by several
// goroutines, and by several processes at the same time, except where they say
// otherwise.
type Memory struct {
	fd   int
	data []byte
	geometry

	// clock is monotonic time in nanoseconds, which all processes share.
	clock func() int64
}

// Create makes a new memory.
func Create(opts Options) (*Memory, error) {
	opts.ensureDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("spoolfs", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make shared memory: %w", err)
	}
	g := newGeometry(opts)
	if err := setSize(fd, int64(g.size)); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make shared memory of %d bytes: %w", g.size, err)
	}
	m, err := mapMemory(fd, g)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	for at, n := range map[uint64]uint64{
		atSlots: g.slots, atBuffer: g.buffer, atHeap: g.heap, atSize: g.size, atSum: g.sum(), atVersion: layoutVersion,
	} {
		m.word(at).Store(n)
	}
	m.word(atMagic).Store(magic) // the last
	return m, nil
}

// setSize gives a memory its size for good: one that a process has mapped and
// another one makes shorter kills the first.
func setSize(fd int, size int64) error {
	if err := unix.Ftruncate(fd, size); err != nil {
		return err
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return err
}

// Open maps a memory that another process has made. The descriptor belongs to
// the memory from then on, also after an error.
func Open(fd int) (*Memory, error) {
	g, err := readGeometry(fd)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	m, err := mapMemory(fd, g)
	if err != nil {
		unix.Close(fd)
	}
	return m, err
}

func readGeometry(fd int) (geometry, error) {
	var head [pageSize]byte
	if n, err := unix.Pread(fd, head[:], 0); err != nil || n < pageSize {
		return geometry{}, fmt.Errorf("read shared memory: %w: %d bytes, %v", ErrDamaged, n, err)
	}
	word := func(at int) uint64 { return *(*uint64)(unsafe.Pointer(&head[at])) }
	if word(atMagic) != magic {
		return geometry{}, fmt.Errorf("%w: no shared memory of spoolfs", ErrDamaged)
	}
	if v := word(atVersion); v != layoutVersion {
		return geometry{}, fmt.Errorf("%w: layout %d, this program has %d", ErrLayout, v, layoutVersion)
	}
	g := geometry{slots: word(atSlots), buffer: word(atBuffer), heap: word(atHeap), size: word(atSize)}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return g, fmt.Errorf("read shared memory: %w", err)
	}
	if word(atSum) != g.sum() || word(atInitLength) > maxInit {
		return g, fmt.Errorf("%w: its header", ErrDamaged)
	}
	return g, g.check(st.Size)
}

func mapMemory(fd int, g geometry) (*Memory, error) {
	unix.CloseOnExec(fd)
	data, err := unix.Mmap(fd, 0, int(g.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map shared memory of %d bytes: %w", g.size, err)
	}
	if err := unix.Madvise(data, unix.MADV_DONTDUMP); err != nil {
		return nil, fmt.Errorf("keep shared memory out of dumps: %w", err)
	}
	return &Memory{fd: fd, data: data, geometry: g, clock: monotonic()}, nil
}

// monotonic returns a clock that is the same in all processes.
func monotonic() func() int64 {
	var ts unix.Timespec
	var start time.Time
	// What passes between the two is how far the clocks of processes are apart.
	for range 100 {
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			panic(err) // every Linux has it
		}
		if start = time.Now(); start.Sub(before) < 20*time.Microsecond {
			break
		}
	}
	base := ts.Nano()
	return func() int64 { return base + int64(time.Since(start)) }
}

// FD is the descriptor, which the memory goes on to own.
func (m *Memory) FD() int { return m.fd }

// Close unmaps the memory. Nothing of it may be used any more.
func (m *Memory) Close() error {
	if m.data == nil {
		return nil
	}
	err := unix.Munmap(m.data)
	m.data = nil
	if e := unix.Close(m.fd); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("close shared memory: %w", err)
	}
	return nil
}

// word is a number in the memory.
func (m *Memory) word(at uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&m.data[at]))
}

// SetInit stores the INIT message with what was negotiated. It is stored once
// for a connection, before there is a worker.
func (m *Memory) SetInit(message []byte) error {
	if len(message) > maxInit {
		return fmt.Errorf("INIT message of %d bytes: %d at most", len(message), maxInit)
	}
	m.word(atInitLength).Store(0)
	copy(m.data[atInit:], message)
	m.word(atInitLength).Store(uint64(len(message)))
	return nil
}

// Init returns the INIT message; nil if there is none yet.
func (m *Memory) Init() []byte {
	n := m.word(atInitLength).Load()
	if n == 0 || n > maxInit {
		return nil
	}
	return append([]byte(nil), m.data[atInit:atInit+n]...)
}

// NextEpoch says that the memory is used for a new connection, on which requests
// are numbered anew.
func (m *Memory) NextEpoch() uint64 { return m.word(atEpoch).Add(1) }

// Epoch counts the connections.
func (m *Memory) Epoch() uint64 { return m.word(atEpoch).Load() }

const (
	flagResends = 1 << iota
	flagCareful
)

// SetResends says that the kernel resends requests that were read and not
// answered (Linux 6.9). Without it they are taken from the slots.
func (m *Memory) SetResends(on bool) { m.setFlag(flagResends, on) }

// Resends reports what SetResends has said.
func (m *Memory) Resends() bool { return m.word(atFlags).Load()&flagResends != 0 }

// SetCareful says that one request is to be handled at a time, so that the next
// death tells which one a worker dies of.
func (m *Memory) SetCareful(on bool) { m.setFlag(flagCareful, on) }

// Careful reports what SetCareful has said.
func (m *Memory) Careful() bool { return m.word(atFlags).Load()&flagCareful != 0 }

func (m *Memory) setFlag(flag uint64, on bool) {
	if on {
		m.word(atFlags).Or(flag)
	} else {
		m.word(atFlags).And(^flag)
	}
}

// NextNode returns a number that was never given out before, from 1 on.
func (m *Memory) NextNode() uint64 { return m.word(atNodes).Add(1) }

// NextSnapshot is NextNode for another sequence.
func (m *Memory) NextSnapshot() uint64 { return m.word(atSnapshots).Add(1) }

// SetAlive says when a worker was seen to work last, in nanoseconds since 1970.
func (m *Memory) SetAlive(at int64) { m.word(atAlive).Store(uint64(at)) }

// Alive returns what SetAlive was told last; 0 if nothing.
func (m *Memory) Alive() int64 { return int64(m.word(atAlive).Load()) }

// SetStore says which store the files in the memory belong to, by a name that no
// other store has.
func (m *Memory) SetStore(name string) { m.word(atStore).Store(hashStore(name)) }

// IsOfStore reports whether they may belong to a store. If nobody has said, they
// may.
func (m *Memory) IsOfStore(name string) bool {
	is := m.word(atStore).Load()
	return is == 0 || is == hashStore(name)
}

func hashStore(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64() | 1
}

// CountStart counts a worker that starts, and returns how many have.
func (m *Memory) CountStart() uint64 { return m.word(atStarts).Add(1) }

// Starts is how many workers have started.
func (m *Memory) Starts() uint64 { return m.word(atStarts).Load() }

// Now is the clock of the times in the memory, in nanoseconds.
func (m *Memory) Now() int64 { return m.clock() }
