package shm

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newMemory(t testing.TB, opts Options) *Memory {
	t.Helper()
	m, err := Create(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// reopen maps the memory as the next process does.
func reopen(t testing.TB, m *Memory) (*Memory, error) {
	t.Helper()
	fd, err := unix.Dup(m.FD())
	if err != nil {
		t.Fatal(err)
	}
	next, err := Open(fd)
	if err == nil {
		t.Cleanup(func() { next.Close() })
	}
	return next, err
}

func mustReopen(t testing.TB, m *Memory) *Memory {
	t.Helper()
	next, err := reopen(t, m)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// TestMemory_Outlives: what one process says the next one hears.
func TestMemory_Outlives(t *testing.T) {
	m := newMemory(t, Options{})
	if m.Init() != nil || m.Resends() || m.Careful() {
		t.Error("a new memory says something")
	}
	if err := m.SetInit([]byte("init")); err != nil {
		t.Fatal(err)
	}
	m.SetResends(true)
	m.SetCareful(true)
	m.NextEpoch()
	m.CountStart()
	next := mustReopen(t, m)
	if string(next.Init()) != "init" || !next.Resends() || !next.Careful() || next.Epoch() != 1 || next.Starts() != 1 {
		t.Errorf("%q, %t, %t, %d, %d", next.Init(), next.Resends(), next.Careful(), next.Epoch(), next.Starts())
	}
	next.SetCareful(false)
	if m.Careful() || !m.Resends() {
		t.Error("a flag took another with it")
	}
	if d := time.Duration(m.Now() - next.Now()); d < -time.Minute || d > time.Minute {
		t.Errorf("the clocks are %s apart", d)
	}
	if err := m.SetInit(make([]byte, maxInit+1)); err == nil {
		t.Error("an INIT that is too long was taken")
	}
}

// TestOpen_Refuses: M2. What is no memory of this version is refused untouched.
func TestOpen_Refuses(t *testing.T) {
	for name, tt := range map[string]struct {
		at   uint64
		is   uint64
		want error
	}{
		"magic":   {atMagic, 1, ErrDamaged},
		"version": {atVersion, layoutVersion + 1, ErrLayout},
		"slots":   {atSlots, 7, ErrDamaged},
		"heap":    {atHeap, 1 << 50, ErrDamaged},
		"size":    {atSize, 1 << 50, ErrDamaged},
		"sum":     {atSum, 0, ErrDamaged},
		"init":    {atInitLength, maxInit + 1, ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(t, Options{})
			m.word(tt.at).Store(tt.is)
			if _, err := reopen(t, m); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if got := m.word(tt.at).Load(); got != tt.is {
				t.Errorf("changed to %d", got)
			}
		})
	}
	for _, size := range []int64{0, 100, pageSize} {
		fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Ftruncate(fd, size); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(fd); !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	// A file that is shorter than its header says must not end in SIGBUS.
	m := newMemory(t, Options{Heap: 1 << 20})
	cut, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Pwrite(cut, m.data[:pageSize], 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(cut, int64(m.size)-1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(cut); !errors.Is(err, ErrDamaged) {
		t.Errorf("a cut memory: %v", err)
	}
}

// TestCreate_Sealed: a worker, which may run as somebody else, cannot cut the
// memory that its keeper has mapped.
func TestCreate_Sealed(t *testing.T) {
	m := newMemory(t, Options{Heap: 1 << 20})
	for _, size := range []int64{0, int64(m.size) - 1, int64(m.size) + 1} {
		if err := unix.Ftruncate(m.FD(), size); !errors.Is(err, unix.EPERM) {
			t.Errorf("truncated to %d bytes: %v", size, err)
		}
	}
	if err := m.punch(m.heap, chunkSize); err != nil {
		t.Errorf("memory cannot be given back: %v", err)
	}
}

// request writes a request as the kernel does.
func request(s *Slot, unique uint64, n int) {
	b := s.Buffer()
	binary.LittleEndian.PutUint32(b[requestLength:], uint32(n))
	binary.LittleEndian.PutUint32(b[requestOpcode:], 16)
	binary.LittleEndian.PutUint64(b[requestUnique:], unique)
	binary.LittleEndian.PutUint32(b[requestPID:], 42)
}

// TestSlot_Life: at each step the next process sees what is in hand.
func TestSlot_Life(t *testing.T) {
	m := newMemory(t, Options{Slots: 3})
	s := m.Slot(1)
	if err := s.Populate(); err != nil {
		t.Log(err)
	}
	want := func(step string, n int) []Request {
		t.Helper()
		got := mustReopen(t, m).InHand()
		if len(got) != n {
			t.Fatalf("%s: %+v, want %d", step, got, n)
		}
		return got
	}
	want("free", 0)
	s.Reading()
	want("reading", 0)
	request(s, 8|Resent, 100)
	if r := want("read", 1)[0]; r.Unique != 8 || !r.Resent || r.Opcode != 16 || r.PID != 42 || r.Slot != 1 || r.Length != 100 {
		t.Errorf("read: %+v", r)
	}
	before := m.Now()
	if r := s.Begin(100); r.Unique != 8 || !r.Resent {
		t.Errorf("begun: %+v", r)
	}
	r := want("begun", 1)[0]
	if r.Unique != 8 || !r.Resent || r.Opcode != 16 || r.PID != 42 || r.Slot != 1 || r.Length != 100 || r.Waits || r.Began < time.Duration(before) {
		t.Errorf("in hand: %+v", r)
	}
	if s.Unique() != 8 {
		t.Errorf("unique %d", s.Unique())
	}
	s.Wait()
	if !want("waiting", 1)[0].Waits {
		t.Error("it does not wait")
	}
	s.Go()
	if again := want("going on", 1)[0]; again.Waits || again.Began < r.Began {
		t.Errorf("going on: %+v", again)
	}
	s.End()
	want("answered", 0)
	s.Reading()
	want("reading the next", 0)
	request(s, 10, 1<<30)
	want("a request that cannot be", 0)
	request(s, 10, 40)
	s.Begin(40)
	m.Drop(1)
	want("dropped", 0)
	if err := s.Depopulate(); err != nil {
		t.Error(err)
	}
	if s.Unique() != 0 || s.Buffer()[requestUnique] != 0 {
		t.Error("the buffer is still there")
	}
}

// TestMemory_IsSparse: what is not used takes no memory.
func TestMemory_IsSparse(t *testing.T) {
	m := newMemory(t, Options{})
	if got := used(t, m); got > 64<<10 {
		t.Errorf("a new memory takes %d bytes", got)
	}
	m.InHand()
	if got := used(t, m); got > 256<<10 {
		t.Errorf("after a look at the slots it takes %d bytes", got)
	}
}

// used is how many bytes of the memory the system has.
func used(t testing.TB, m *Memory) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(m.FD(), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}
