package fs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/device"
)

// script is a connection to a test, which plays the kernel.
type script struct {
	requests chan []byte
	stopped  chan struct{}
	stop     sync.Once

	mu      sync.Mutex
	replies map[uint64]chan []byte
	refuse  error // what Write returns, if not nil
}

var _ connection = (*script)(nil)

func newScript() *script {
	return &script{requests: make(chan []byte), stopped: make(chan struct{}), replies: map[uint64]chan []byte{}}
}

func (s *script) Read(buf []byte) (int, error) {
	select {
	case r := <-s.requests:
		return copy(buf, r), nil
	case <-s.stopped:
		return 0, errStopped
	}
}

func (s *script) Write(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return s.refuse
	}
	if c := s.replies[binary.LittleEndian.Uint64(message[8:])]; c != nil {
		c <- bytes.Clone(message)
	}
	return nil
}

func (s *script) Stop()        { s.stop.Do(func() { close(s.stopped) }) }
func (s *script) Close() error { return nil }
func (s *script) Again()       {}

// send sends a request and returns where its reply will be.
func (s *script) send(t testing.TB, request []byte) chan []byte {
	t.Helper()
	reply := make(chan []byte, 2)
	s.mu.Lock()
	s.replies[binary.LittleEndian.Uint64(request[8:])] = reply
	s.mu.Unlock()
	select {
	case s.requests <- request:
	case <-time.After(time.Minute):
		t.Fatal("nobody reads the request")
	}
	return reply
}

// ask sends a request and returns the reply.
func (s *script) ask(t testing.TB, request []byte) []byte {
	t.Helper()
	return await(t, s.send(t, request))
}

func await(t testing.TB, reply chan []byte) []byte {
	t.Helper()
	select {
	case r := <-reply:
		return r
	case <-time.After(time.Minute):
		t.Fatal("no reply")
		return nil
	}
}

// errnoOf is that of a reply.
func errnoOf(reply []byte) syscall.Errno {
	return syscall.Errno(-int32(binary.LittleEndian.Uint32(reply[4:])))
}

// encode makes a request of its input, which begins with the header, and what
// follows it.
func encode[T any](opcode uint32, in *T, rest ...string) []byte {
	b := bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(in)), unsafe.Sizeof(*in)))
	for _, r := range rest {
		b = append(b, r...)
	}
	binary.LittleEndian.PutUint32(b[0:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[4:], opcode)
	return b
}

// The codes of the requests that the tests send.
const (
	codeLookup = 1
	codeWrite  = 16
	codeFlush  = 25
)

// testInit is the INIT of a recent kernel.
func testInit() []byte {
	in := fuse.InitIn{Major: 7, Minor: 45, MaxReadAhead: 128 << 10, Flags: 0x404429}
	in.Unique = 2
	return encode(26, &in)
}

// serve serves a script.
func (r *rig) serve() *script {
	r.t.Helper()
	c := newScript()
	if err := r.fs.memory.SetInit(testInit()); err != nil {
		r.t.Fatal(err)
	}
	s, err := newServer(r.fs, c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.fs.server.Store(s)
	s.start()
	r.t.Cleanup(func() {
		s.stop()
		r.fs.server.Store(nil)
	})
	return c
}

// TestServer_Handshake: go-fuse must answer INIT as it was answered, whatever the
// kernel offers, or the connection is refused.
func TestServer_Handshake(t *testing.T) {
	r := newRig(t, Options{})
	for _, flags := range []uint32{0, 0x404429, 1} {
		in := testInit()
		binary.LittleEndian.PutUint32(in[52:], flags)
		if err := r.fs.memory.SetInit(in); err != nil {
			t.Fatal(err)
		}
		if _, err := newServer(r.fs, newScript()); err != nil {
			t.Errorf("flags %#x: %v", flags, err)
		}
	}
	in := testInit()
	binary.LittleEndian.PutUint32(in[52:], 1<<13) // readdirplus, which is not negotiated
	if err := r.fs.memory.SetInit(in); err != nil {
		t.Fatal(err)
	}
	if _, err := newServer(r.fs, newScript()); err != nil {
		t.Errorf("what nobody has agreed on: %v", err)
	}
	binary.LittleEndian.PutUint32(in[40:], 8) // another protocol
	if err := r.fs.memory.SetInit(in); err != nil {
		t.Fatal(err)
	}
	if _, err := newServer(r.fs, newScript()); err == nil || !strings.Contains(err.Error(), "mount anew") {
		t.Errorf("another protocol: %v", err)
	}
}

// TestServer_WaitingHoldsUpNobody: requests of all kinds that wait for the disk do
// not keep others from being answered, however many there are.
func TestServer_WaitingHoldsUpNobody(t *testing.T) {
	r := newRig(t, Options{})
	c := r.serve()
	u := r.as(7)
	f := u.mustCreate("f")
	file := r.fs.handle(f.fh).file
	file.mu.Lock() // as somebody does who waits for the disk
	var replies []chan []byte
	for i := range 60 {
		var request []byte
		if i%2 == 0 {
			request = encode(codeWrite, &fuse.WriteIn{InHeader: u.header(f.node), Fh: f.fh, Size: 1}, "x")
		} else {
			request = encode(codeFlush, &fuse.FlushIn{InHeader: u.header(f.node), Fh: f.fh})
		}
		replies = append(replies, c.send(t, request))
	}
	in := u.header(rootNode)
	if got := errnoOf(c.ask(t, encode(codeLookup, &in, "nothing\x00"))); got != syscall.ENOENT {
		t.Errorf("lookup: %v", got)
	}
	r.until("all 60 marked as waiting", func() bool {
		waiting := 0
		for _, q := range r.fs.memory.InHand() {
			if q.Waits {
				waiting++
			}
		}
		return waiting == 60
	})
	file.mu.Unlock()
	for i, reply := range replies {
		if got := errnoOf(await(t, reply)); got != 0 {
			t.Errorf("request %d: %v", i, got)
		}
	}
	r.until("as many readers as before", func() bool {
		s := r.fs.server.Load()
		return s.active.Load() == int64(s.readers)
	})
	r.until("nothing in hand", func() bool { return len(r.fs.memory.InHand()) == 0 })
}

// TestServer_Stop: it returns when what is in hand is answered.
func TestServer_Stop(t *testing.T) {
	r := newRig(t, Options{})
	c := r.serve()
	u := r.as(7)
	f := u.mustCreate("f")
	file := r.fs.handle(f.fh).file
	file.mu.Lock()
	flush := c.send(t, encode(codeFlush, &fuse.FlushIn{InHeader: u.header(f.node), Fh: f.fh}))
	r.until("waiting", func() bool { q := r.fs.memory.InHand(); return len(q) == 1 && q[0].Waits })
	stopped := make(chan struct{})
	go func() {
		r.fs.server.Load().stop()
		close(stopped)
	}()
	select {
	case <-stopped:
		t.Error("stopped with a request in hand")
	case <-flush:
		t.Error("answered while the file is locked")
	case <-c.stopped:
	}
	file.mu.Unlock()
	if got := errnoOf(await(t, flush)); got != 0 {
		t.Errorf("flush: %v", got)
	}
	<-stopped
}

// TestServer_Garbage: what cannot be understood gets an error, and costs no more.
func TestServer_Garbage(t *testing.T) {
	r := newRig(t, Options{})
	c := r.serve()
	in := r.as(7).header(rootNode)
	for _, request := range [][]byte{
		encode(9999, &in), encode(codeWrite, &in), encode(codeLookup, &in)[:40], encode(codeFlush, &in),
	} {
		if got := errnoOf(c.ask(t, request)); got == 0 {
			t.Errorf("%x was taken", request)
		}
	}
	big := strings.Repeat("x", device.MaxWrite)
	f := r.as(7).mustCreate("f")
	w := fuse.WriteIn{InHeader: r.as(7).header(f.node), Fh: f.fh, Size: uint32(len(big))}
	if reply := c.ask(t, encode(codeWrite, &w, big)); errnoOf(reply) != 0 {
		t.Error(fmt.Errorf("the largest write: %w", errnoOf(reply)))
	}
}
