package integration

import (
	"encoding/gob"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// hand is a process that does to files what a test tells it, one system call
// after the other. It starts no process: that would flush what it has open.
type hand struct {
	t   testing.TB
	dir string // before all paths
	in  *gob.Encoder
	out *gob.Decoder
}

// order is a system call.
type order struct {
	Call  string
	FD    int
	Flags int // or a mode, or an owner
	N     int64
	Path  string
	To    string
	Data  []byte
}

// answer is what came of it.
type answer struct {
	Errno syscall.Errno
	N     int64
	Data  []byte
	Names []string
	Stat  unix.Stat_t
}

// newHand starts a hand in the mount.
func (s *spool) newHand() *hand { return s.handOf(0) }

// handOf starts a hand of another user.
func (s *spool) handOf(uid uint32) *hand {
	s.t.Helper()
	cmd := self("hand")
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &hand{t: s.t, dir: s.dir, in: gob.NewEncoder(in), out: gob.NewDecoder(out)}
}

// try does a system call and returns what came of it.
func (h *hand) try(o order) answer {
	h.t.Helper()
	for _, path := range []*string{&o.Path, &o.To} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = h.dir + "/" + *path
		}
	}
	if err := h.in.Encode(o); err != nil {
		h.t.Fatal(err)
	}
	var a answer
	if err := h.out.Decode(&a); err != nil {
		h.t.Fatalf("%s: %v", o.Call, err)
	}
	return a
}

// do does a system call that has to succeed.
func (h *hand) do(o order) answer {
	h.t.Helper()
	a := h.try(o)
	if a.Errno != 0 {
		h.t.Fatalf("%s of %q (descriptor %d): %v", o.Call, o.Path, o.FD, a.Errno)
	}
	return a
}

// refuses does a system call that has to fail in one of some ways.
func (h *hand) refuses(o order, want ...syscall.Errno) {
	h.t.Helper()
	if a := h.try(o); !slices.Contains(want, a.Errno) {
		h.t.Errorf("%s of %q: got %d (%v), want %v", o.Call, o.Path, a.Errno, a.Errno, want)
	}
}

func (h *hand) open(path string, flags int) int {
	h.t.Helper()
	return int(h.do(order{Call: "open", Path: path, Flags: flags}).N)
}

func (h *hand) create(path string) int {
	h.t.Helper()
	return h.open(path, unix.O_CREAT|unix.O_WRONLY)
}

func (h *hand) write(fd int, text string) {
	h.t.Helper()
	h.do(order{Call: "write", FD: fd, Data: []byte(text)})
}

func (h *hand) fsync(fd int) {
	h.t.Helper()
	h.do(order{Call: "fsync", FD: fd})
}

func (h *hand) close(fd int) {
	h.t.Helper()
	h.do(order{Call: "close", FD: fd})
}

// put writes a file.
func (h *hand) put(path, text string) {
	h.t.Helper()
	fd := h.create(path)
	h.write(fd, text)
	h.close(fd)
}

// read returns the content of a file.
func (h *hand) read(path string) string {
	h.t.Helper()
	fd := h.open(path, unix.O_RDONLY)
	defer h.close(fd)
	return string(h.do(order{Call: "read", FD: fd, N: 1 << 20}).Data)
}

// runHand does what standard input says until it ends.
func runHand([]string) int {
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var o order
		if in.Decode(&o) != nil {
			return 0
		}
		var a answer
		if err := o.run(&a); err != nil && !errors.As(err, &a.Errno) {
			return 1
		}
		if out.Encode(&a) != nil {
			return 1
		}
	}
}

// run does the system call: by itself, since package os would call again after
// EINTR.
func (o *order) run(a *answer) (err error) {
	var n int
	switch o.Call {
	case "open":
		n, err = unix.Open(o.Path, o.Flags|unix.O_CLOEXEC, 0o644)
	case "write":
		n, err = unix.Write(o.FD, o.Data)
		if err == nil && n < len(o.Data) {
			err = unix.EIO
		}
	case "read":
		a.Data = make([]byte, o.N)
		n, err = unix.Pread(o.FD, a.Data, 0)
		a.Data = a.Data[:max(n, 0)]
	case "fsync":
		err = unix.Fsync(o.FD)
	case "close":
		err = unix.Close(o.FD)
	case "ftruncate":
		err = unix.Ftruncate(o.FD, o.N)
	case "fchmod":
		err = unix.Fchmod(o.FD, uint32(o.Flags))
	case "fchown":
		err = unix.Fchown(o.FD, o.Flags, o.Flags)
	case "fstat":
		err = unix.Fstat(o.FD, &a.Stat)
	default:
		return o.runByPath(a)
	}
	a.N = int64(n)
	return err
}

func (o *order) runByPath(a *answer) (err error) {
	switch o.Call {
	case "truncate":
		return unix.Truncate(o.Path, o.N)
	case "rename":
		return unix.Rename(o.Path, o.To)
	case "link":
		return unix.Link(o.Path, o.To)
	case "unlink":
		return unix.Unlink(o.Path)
	case "mkdir":
		return unix.Mkdir(o.Path, uint32(o.Flags))
	case "rmdir":
		return unix.Rmdir(o.Path)
	case "stat":
		return unix.Stat(o.Path, &a.Stat)
	case "access":
		return unix.Access(o.Path, uint32(o.Flags))
	case "chmod":
		return unix.Chmod(o.Path, uint32(o.Flags))
	case "chown":
		return unix.Chown(o.Path, o.Flags, o.Flags)
	case "utimes":
		return unix.Utimes(o.Path, []unix.Timeval{{Sec: 1}, {Sec: 1}})
	case "list":
		entries, err := os.ReadDir(o.Path)
		for _, e := range entries {
			a.Names = append(a.Names, e.Name())
		}
		return err
	}
	return unix.ENOSYS
}
