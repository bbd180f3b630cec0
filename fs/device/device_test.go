package device

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// open makes a connection for a directory of the test.
func open(t *testing.T, dir string) *Device {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("mounting needs root")
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		for unix.Unmount(dir, unix.MNT_DETACH) == nil {
			continue
		}
	})
	return d
}

// dead reports whether a dead mount is on a directory.
func dead(t *testing.T, dir string) bool {
	t.Helper()
	is, err := isDead(dir)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// TestDevice_AttachShowsIt proves D1: the mount is not there before Attach, and
// not after Detach.
func TestDevice_AttachShowsIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "below"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	if _, err := os.Lstat(filepath.Join(dir, "below")); err != nil {
		t.Errorf("before Attach: %v", err)
	}
	if err := d.Attach(); err != nil {
		t.Fatal(err)
	}
	stop := serve(d)
	defer stop()
	if err := unix.Access(filepath.Join(dir, "below"), unix.F_OK); !errors.Is(err, unix.EIO) {
		t.Errorf("after Attach: %v, want the EIO of the server", err)
	}
	if err := d.Detach(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "below")); err != nil {
		t.Errorf("after Detach: %v", err)
	}
}

// serve answers all requests with EIO, until the mount is gone or stop is called.
func serve(d *Device) (stop func()) {
	ended, quit := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, RequestSize)
		for {
			fds := []unix.PollFd{{Fd: int32(d.FD), Events: unix.POLLIN}}
			unix.Poll(fds, 10)
			n, err := unix.Read(d.FD, b)
			switch {
			case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT):
			case err != nil:
				return
			case n >= headerSize:
				d.Refuse(binary.NativeEndian.Uint64(b[uniqueAt:]), unix.EIO)
			}
			select {
			case <-quit:
				return
			default:
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// TestDevice_AttachReplacesDead proves D2: a dead mount is replaced, also by a
// kernel that cannot mount beneath it.
func TestDevice_AttachReplacesDead(t *testing.T) {
	unable := func(int, string) error { return unix.EINVAL }
	for name, beneath := range map[string]func(int, string) error{"beneath": mountBeneath, "old kernel": unable} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := open(t, dir)
			if err := first.Attach(); err != nil {
				t.Fatal(err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if !dead(t, dir) {
				t.Fatal("the mount of a closed device is not dead")
			}
			d := open(t, dir)
			visible := false
			err := d.attach(func(mount int, dir string) error {
				visible = !dead(t, dir)
				err := beneath(mount, dir)
				visible = visible || err == nil && !dead(t, dir)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if visible {
				t.Error("the dead mount was gone before the new one was there")
			}
			stop := serve(d)
			if err := unix.Access(filepath.Join(dir, "x"), unix.F_OK); !errors.Is(err, unix.EIO) {
				t.Errorf("in the new mount: %v, want the EIO of the server", err)
			}
			stop()
			if err := d.Detach(); err != nil {
				t.Fatal(err)
			}
			if dead(t, dir) {
				t.Error("the dead mount is still there")
			}
		})
	}
}

// TestDevice_RefusesPlaces: what cannot be mounted on is refused at once.
func TestDevice_RefusesPlaces(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a mountpoint that is not there: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a mountpoint that is a file: %v", err)
	}
}

// TestDevice_NoInterrupts proves D3: a process that gets a signal while it waits
// makes the kernel send an INTERRUPT, and over our connections it does not.
func TestDevice_NoInterrupts(t *testing.T) {
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprintf("off=%t", off), func(t *testing.T) {
			d := negotiated(t, off)
			thread, answered := askStatfs(d)
			first := nextRequest(t, d)
			if err := unix.Tgkill(os.Getpid(), thread, unix.SIGURG); err != nil {
				t.Fatal(err)
			}
			waitState(t, thread, "D")
			// An INTERRUPT comes before requests that are newer.
			_, other := askStatfs(d)
			second := nextRequest(t, d)
			const opInterrupt = 36
			if got := second.opcode == opInterrupt; got == off {
				t.Errorf("the request after the signal has opcode %d", second.opcode)
			}
			if second.opcode == opInterrupt {
				second = nextRequest(t, d)
			}
			for _, r := range []request{first, second} {
				if err := d.Refuse(r.unique, unix.EIO); err != nil {
					t.Error(err)
				}
			}
			<-answered
			<-other
		})
	}
}

// negotiated is a device with INIT answered.
func negotiated(t *testing.T, interruptsOff bool) *Device {
	t.Helper()
	d := &Device{FD: -1, mount: -1, dir: t.TempDir(), source: "spoolfs", direct: true}
	err := d.openDirect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	reply, err := d.readInit()
	if err == nil {
		err = d.write(reply)
	}
	if err == nil && interruptsOff {
		err = d.stopInterrupts()
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// askStatfs asks for the state of the file system in a thread of its own.
func askStatfs(d *Device) (thread int, answered chan error) {
	threads := make(chan int)
	answered = make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		threads <- unix.Gettid()
		answered <- d.statfs()
	}()
	return <-threads, answered
}

type request struct {
	unique uint64
	opcode uint32
}

func nextRequest(t *testing.T, d *Device) request {
	t.Helper()
	b := make([]byte, RequestSize)
	if _, err := ignoringEINTR(func() (int, error) { return unix.Read(d.FD, b) }); err != nil {
		t.Fatal(err)
	}
	return request{binary.NativeEndian.Uint64(b[uniqueAt:]), binary.NativeEndian.Uint32(b[opcodeAt:])}
}

// waitState waits until a thread is in a state of proc(5).
func waitState(t *testing.T, thread int, want string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", thread))
		if err != nil {
			t.Fatal(err)
		}
		_, fields, _ := strings.Cut(string(stat), ") ")
		if strings.HasPrefix(fields, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the thread did not get into state %s: %s", want, stat)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestNegotiate: an INIT of any kernel gets a reply, and what is saved offers what
// was agreed.
func TestNegotiate(t *testing.T) {
	order := binary.NativeEndian
	request := func(size int, version, flags, flags2 uint32) []byte {
		b := make([]byte, initSize)
		order.PutUint32(b[opcodeAt:], opInit)
		order.PutUint64(b[uniqueAt:], 2)
		order.PutUint32(b[majorAt:], version)
		order.PutUint32(b[minorAt:], 45)
		order.PutUint32(b[flagsAt:], flags)
		order.PutUint32(b[flags2At:], flags2)
		return b[:size]
	}
	old := flags2At // before 7.36
	for _, tt := range []struct {
		name    string
		request []byte
		agreed  uint32
		resend  bool
		fails   bool
	}{
		{"all flags", request(initSize, 7, 0xffffffff, 0xffffffff), negotiatedFlags, true, false},
		{"no more than 32 flags", request(initSize, 7, 0xffffffff&^extended, 0xffffffff), negotiatedFlags, false, false},
		{"old", request(old, 7, asyncRead|bigWrites, 0), asyncRead | bigWrites, false, false},
		{"another protocol", request(initSize, 8, 0, 0), 0, false, true},
		{"short", request(headerSize, 7, 0, 0), 0, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			saved, reply, err := negotiate(tt.request)
			if (err != nil) != tt.fails {
				t.Fatalf("got error %v", err)
			}
			if err != nil {
				return
			}
			if got := order.Uint32(saved[flagsAt:]); got != tt.agreed {
				t.Errorf("saved flags %#x, want %#x", got, tt.agreed)
			}
			if got := order.Uint32(reply[28:]); got != tt.agreed|extended {
				t.Errorf("flags of the reply %#x, want %#x", got, tt.agreed|extended)
			}
			if got := flagsOf(tt.request)&hasResend != 0; got != tt.resend {
				t.Errorf("resend %t, want %t", got, tt.resend)
			}
			d := &Device{Init: saved}
			if got := d.Reply(); string(got) != string(reply) {
				t.Errorf("the reply to what was saved is %x, was %x", got, reply)
			}
		})
	}
}
