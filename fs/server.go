package fs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/device"
	"spoolfs/fs/shm"
)

// server takes requests from a connection, has them handled and sends the
// replies. A request is in a slot of the memory from its reading to its answer.
//
// A few readers read and handle most requests themselves. Those that are likely to
// wait for the disk are handled by a goroutine of their own, but for those of soon.go;
// and a reader that has to wait against expectation is replaced while it does.
type server struct {
	fs     *FS
	memory *shm.Memory
	conn   connection
	proto  *fuse.ProtocolServer
	slots  *slotPool

	// readers is how many there should be, active how many do not wait. There is one
	// for each CPU and one that may wait for the disk for all (soon.go), and one more on
	// a machine with a single CPU: another may meet a disk that is stuck in a RELEASE.
	readers int
	active  atomic.Int64

	// fresh is when the first request was read that was not resent, by the clock
	// of the memory; 0 before that.
	fresh atomic.Int64

	running sync.WaitGroup // readers and jobs
	crew    *crew          // who does the jobs
	careful sync.Mutex     // held from Begin to End of a request, if the memory says so
}

// replySize is enough for a reply without data. Others are at most as large as a
// request.
const replySize = 4096

func newServer(fs *FS, conn connection) (*server, error) {
	s := &server{fs: fs, memory: fs.memory, conn: conn, slots: newSlotPool(fs.memory), readers: max(runtime.NumCPU(), 2) + 1, crew: newCrew()}
	s.proto = fuse.NewProtocolServer(fs.wrapped(), protocolOptions(fs))
	return s, s.handshake()
}

// protocolOptions have go-fuse understand requests as they were negotiated.
func protocolOptions(fs *FS) *fuse.MountOptions {
	return &fuse.MountOptions{
		MaxWrite: device.MaxWrite, MaxBackground: device.MaxBackground,
		DisableXAttrs: true, DisableReadDirPlus: true,
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC,
		PanicHandler:      func(cause any) fuse.Status { return fs.recovered(cause) },
		Logger:            log.New(io.Discard, "", 0),
	}
}

// handshake feeds the protocol with the INIT of the connection, which has been
// answered long ago, and sees that it would have answered the same.
func (s *server) handshake() error {
	init := s.memory.Init()
	out := make([]byte, replySize)
	n, st := s.proto.HandleRequest([][]byte{init}, [][]byte{out})
	want := (&device.Device{Init: init}).Reply()
	if !st.Ok() || want == nil || string(out[:n]) != string(want) {
		return fmt.Errorf("%w: the connection was negotiated otherwise than this program does: %v, %x, want %x: mount anew", shm.ErrLayout, st, out[:n], want)
	}
	return nil
}

// start begins to serve.
func (s *server) start() {
	s.crew.start()
	for range s.readers {
		s.addReader()
	}
}

func (s *server) addReader() {
	s.active.Add(1)
	s.running.Go(s.read)
}

// takeUp has the requests handled that a former process had in hand: the kernel
// sends them again, or they are in their slots.
func (s *server) takeUp() error {
	if s.memory.Resends() {
		// FUSE_NOTIFY_RESEND, include/uapi/linux/fuse.h
		message := []byte{16, 0, 0, 0, 7, 0, 0, 0, 15: 0}
		if err := s.conn.Write(message); err != nil {
			return fmt.Errorf("have requests sent again: %w", err)
		}
		for _, r := range s.memory.InHand() {
			s.memory.Drop(r.Slot)
		}
		return nil
	}
	out := make([]byte, device.RequestSize)
	for _, r := range s.memory.InHand() {
		if h := s.slots.hold(r.Slot); !h.isWhole(r) {
			s.fs.opts.Logger.Error("a request is damaged in the shared memory: it is answered with EIO", "slot", r.Slot, "unique", r.Unique)
			s.reply(h, out[:refusal(out, r.Unique, syscall.EIO)])
			h.slot.End()
			continue
		}
		s.replay(r, out)
	}
	s.fs.forgetOutcomes()
	return nil
}

// isWhole reports whether the buffer of a slot holds the request that it should.
func (h *hand) isWhole(r shm.Request) bool {
	const header = 40
	in := h.slot.Buffer()
	return r.Length >= header && binary.LittleEndian.Uint32(in) == uint32(r.Length) &&
		binary.LittleEndian.Uint64(in[8:])&^shm.Resent == r.Unique
}

// replay handles a request that is in a slot.
func (s *server) replay(r shm.Request, out []byte) {
	h := s.slots.hold(r.Slot)
	in := h.slot.Buffer()[:r.Length]
	unique := binary.LittleEndian.Uint64(in[8:]) &^ shm.Resent
	binary.LittleEndian.PutUint64(in[8:], unique|shm.Resent)
	h.request = h.slot.Begin(r.Length)
	if h.request.Opcode != opcodeInterrupt {
		if n := s.handle(h, out); n > 0 {
			binary.LittleEndian.PutUint64(out[8:], unique)
			s.reply(h, out[:n])
		}
	}
	h.slot.End()
}

// Opcodes of requests that are not left to go-fuse.
const (
	opcodeRelease   = 18
	opcodeFlush     = 25
	opcodeInterrupt = 36
)

// noteFresh notes that no more requests will be resent: those come first.
func (s *server) noteFresh(h *hand) {
	const forget, batchForget = 2, 42
	op := h.request.Opcode
	if s.fresh.Load() == 0 && !h.request.Resent && op != forget && op != opcodeInterrupt && op != batchForget {
		s.fresh.Store(s.memory.Now())
	}
}

// resendsAreOver reports whether no request can come any more that a former
// process had in hand. A reader may be late by some time.
func (s *server) resendsAreOver(late time.Duration) bool {
	at := s.fresh.Load()
	if at == 0 || s.memory.Now()-at < int64(late) {
		return false
	}
	for _, r := range s.memory.InHand() {
		if r.Resent {
			return false
		}
	}
	return true
}

// stop takes no more requests and returns when those in hand are answered.
func (s *server) stop() {
	s.conn.Stop()
	s.still()
}

// still returns when nothing is in hand any more, and no request will be.
func (s *server) still() {
	s.running.Wait()
	s.crew.end()
}

// read is a reader.
func (s *server) read() {
	defer s.conn.Again()
	defer s.active.Add(-1)
	out := make([]byte, device.RequestSize)
	for s.active.Load() <= int64(s.readers) {
		h := s.slots.take(s.conn.Again)
		h.slot.Reading()
		n, err := s.conn.Read(h.slot.Buffer())
		if err != nil {
			s.slots.give(h)
			if !errors.Is(err, errGone) && !errors.Is(err, errStopped) {
				s.fs.opts.Logger.Error("the mount is not served any more", "error", err)
			}
			return
		}
		h.alone = s.memory.Careful()
		if h.alone {
			s.careful.Lock() // what waits for it is not in hand
		}
		h.request = h.slot.Begin(n)
		s.noteFresh(h)
		if s.soon(h) {
			continue
		}
		if waits(h) {
			h.inline = false
			s.running.Add(1)
			s.crew.do(func() {
				defer s.running.Done()
				s.job(h)
			})
			continue
		}
		h.inline = true
		s.answer(h, out)
	}
}

// job handles a request that may wait.
func (s *server) job(h *hand) {
	out := replies.Get().(*[replySize]byte)
	defer replies.Put(out)
	s.answer(h, out[:])
}

var replies = sync.Pool{New: func() any { return new([replySize]byte) }}

// answer handles a request and sends the reply.
func (s *server) answer(h *hand, out []byte) {
	if n := s.handle(h, out); n > 0 {
		s.reply(h, out[:n])
	}
	s.done(h)
}

// done says that a request has been answered.
func (s *server) done(h *hand) {
	h.slot.End()
	if h.alone {
		s.careful.Unlock()
	}
	s.slots.give(h)
}

// handle makes the reply to a request, of n bytes.
func (s *server) handle(h *hand, out []byte) (n int) {
	in := h.slot.Buffer()[:h.request.Length]
	n, st := s.proto.HandleRequest([][]byte{in}, [][]byte{out})
	if !st.Ok() {
		return refusal(out, binary.LittleEndian.Uint64(in[8:]), syscall.EIO)
	}
	return n
}

// refusal makes a reply that is an error.
func refusal(out []byte, unique uint64, errno syscall.Errno) int {
	binary.LittleEndian.PutUint32(out[0:], replyHead)
	binary.LittleEndian.PutUint32(out[4:], uint32(-int32(errno)))
	binary.LittleEndian.PutUint64(out[8:], unique)
	return replyHead
}

// replyHead is the size of a reply that is nothing but its head.
const replyHead = 16

// reply sends a reply. That nobody waits for it any more is no error.
func (s *server) reply(h *hand, message []byte) {
	err := s.conn.Write(message)
	if err == nil || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENOTCONN) {
		return
	}
	s.fs.opts.Logger.Error("reply", "opcode", h.request.Opcode, "error", err)
}

// wait says that a request waits for the disk, until the function that it
// returns is called.
func (s *server) wait(unique uint64) func() {
	h := s.slots.find(unique &^ shm.Resent)
	if h == nil {
		return func() {}
	}
	h.slot.Wait()
	if !h.inline {
		return h.slot.Go
	}
	s.conn.Again()
	if s.active.Add(-1) < int64(s.readers) {
		s.addReader()
	}
	return func() {
		s.active.Add(1)
		h.slot.Go()
	}
}

// prune has the kernel forget nodes. That is safe for a worker that may be killed:
// FUSE_NOTIFY_PRUNE (Linux 6.18, fuse_try_prune_one_inode) looks the inode up, drops
// its names that nobody uses (d_prune_aliases) and lets go of it. It takes spinlocks
// and, to read, the lock of the list of mounts, which a mount and an umount hold
// without waiting for us; the last use of an inode queues a FORGET and sends no
// request. Other than FUSE_NOTIFY_INVAL_ENTRY and DELETE it takes no lock of a
// directory, which a process holds while it waits for an answer of ours.
func (s *server) prune(nodes []uint64) fuse.Status {
	const notifyPrune = 9 // FUSE_NOTIFY_PRUNE, include/uapi/linux/fuse.h
	message := make([]byte, 32, 32+8*len(nodes))
	binary.LittleEndian.PutUint32(message[4:], notifyPrune)
	binary.LittleEndian.PutUint32(message[16:], uint32(len(nodes)))
	for _, node := range nodes {
		message = binary.LittleEndian.AppendUint64(message, node)
	}
	binary.LittleEndian.PutUint32(message, uint32(len(message)))
	return fuse.ToStatus(s.conn.Write(message))
}

// Opcodes of requests that may wait for the disk, whatever they are about.
var waitingOps = func() (ops [64]bool) {
	const (
		setAttr = 4
		mkdir   = 9
		unlink  = 10
		rmdir   = 11
		rename  = 12
		fsync   = 20
		rename2 = 45
	)
	for _, op := range []uint32{setAttr, mkdir, unlink, rmdir, rename, opcodeRelease, fsync, opcodeFlush, rename2} {
		ops[op] = true
	}
	return ops
}()

// waits reports whether a request is likely to wait for the disk.
func waits(h *hand) bool {
	op := h.request.Opcode
	return op < uint32(len(waitingOps)) && waitingOps[op]
}
