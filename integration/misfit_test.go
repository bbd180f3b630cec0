package integration

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// sharedMemory opens the memory that a spool's keeper shares with its workers.
func (s *spool) sharedMemory() *os.File {
	s.t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range paths {
		if target, err := os.Readlink(path); err != nil || !strings.HasPrefix(target, "/memfd:spoolfs") {
			continue
		}
		memory, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { memory.Close() })
		return memory
	}
	s.t.Fatal("the keeper has no shared memory")
	return nil
}

// scribble writes a byte to it.
func (s *spool) scribble(at int64, b byte) {
	s.t.Helper()
	if _, err := s.sharedMemory().WriteAt([]byte{b}, at); err != nil {
		s.t.Fatal(err)
	}
}

// numberAt reads a number of it.
func (s *spool) numberAt(at int64) int64 {
	s.t.Helper()
	b := make([]byte, 8)
	if _, err := s.sharedMemory().ReadAt(b, at); err != nil {
		s.t.Fatal(err)
	}
	return int64(binary.LittleEndian.Uint64(b))
}

var deadMount = []syscall.Errno{unix.ECONNABORTED, unix.ENOTCONN}

// TestKeeper_Unfit: when the shared memory makes no sense to a worker, or is of
// another version, the mount is given up at once, and loudly: writers get an error
// and do not hang, the log tells why, and the next start has a new mount and all
// that was closed.
func TestKeeper_Unfit(t *testing.T) {
	const versionAt, slotsAt, heapAt = 8, 16, 32
	for _, tt := range []struct {
		name, says string
		damage     func(s *spool)
	}{
		{"version", "another version", func(s *spool) { s.scribble(versionAt, 99) }},
		{"header", "damaged", func(s *spool) { s.scribble(slotsAt, 7) }},
		{"records", "damaged", func(s *spool) { s.scribble(s.numberAt(heapAt), 200) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, w := startKept(t, "--worker-timeout", "1h")
			h := s.newHand()
			h.put("before", record("before")+"\n")
			fd := h.create("open")
			h.write(fd, record("lost")+"\n")
			tt.damage(s)
			if err := unix.Kill(w.current(), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			h.refuses(order{Call: "write", FD: fd, Data: []byte("x")}, deadMount...)
			h.refuses(order{Call: "open", Path: "late", Flags: unix.O_CREAT | unix.O_WRONLY}, deadMount...)
			if code := s.wait(); code != 69 {
				t.Errorf("exit code %d, want 69", code)
			}
			for _, text := range []string{"the mount is given up", tt.says} {
				if !strings.Contains(s.stderr.String(), text) {
					t.Errorf("the log does not say %q:\n%s", text, s.stderr)
				}
			}
			s.start()
			s.newHand().put("after", record("after")+"\n")
			s.untilIngested(1)
			if code := s.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			checkTexts(t, "queued", s.stored().pending, []string{record("before"), record("after")})
		})
	}
}

// TestKeeper_OtherStore: a service that comes back with another store, while its
// manager has kept what was open with the former one, does not mix them: who has a
// file open gets an error, and each store has what was closed with it. When nothing
// is open the mount goes on with the other store.
func TestKeeper_OtherStore(t *testing.T) {
	m := newServiceManager(t)
	s, _ := newKept(t, plainBinary, "--worker-timeout", "1h")
	m.equip(s)
	s.start()
	stores := []string{s.store, s.store + "-2", s.store + "-3"}
	restart := func(store string) {
		t.Helper()
		if code := s.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		m.equip(s)
		s.args[1], s.store = store, store
		s.launch()
	}
	h := s.newHand()
	h.put("one", record("one")+"\n")
	s.untilClosed()

	restart(stores[1])
	h.put("two", record("two")+"\n") // who was there before goes on
	s.untilClosed()
	fd := h.create("open")
	h.write(fd, record("flushed")+"\n")
	h.fsync(fd)

	restart(stores[2])
	if code := s.wait(); code != 69 || !strings.Contains(s.stderr.String(), "belongs to another store") {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
	h.refuses(order{Call: "write", FD: fd, Data: []byte("x")}, deadMount...)
	s.until("forgotten", func() bool { return m.Stored() == 0 })
	m.equip(s)
	s.start()
	s.newHand().put("three", record("three")+"\n")
	s.untilClosed()
	s.command("unmount", s.dir)
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for i, want := range [][]string{{record("one")}, {record("two"), record("flushed")}, {record("three")}} {
		s.store = stores[i]
		checkTexts(t, stores[i], s.stored().pending, want)
	}
}

// TestKeeper_UpgradeOtherStore: an upgrade with a configuration that names another
// store by now is refused, and the old version goes on with the one it has.
func TestKeeper_UpgradeOtherStore(t *testing.T) {
	s, _ := newKept(t, plainBinary)
	config := filepath.Join(t.TempDir(), "spoolfs.yaml")
	configure := func(store string) {
		t.Helper()
		if err := os.WriteFile(config, []byte("store: "+store+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure(s.store)
	s.args = append([]string{"--config", config}, s.args[2:]...) // the file says it
	s.start()
	h := s.newHand()
	fd := h.create("open")
	h.write(fd, record("open")+"\n")
	for _, store := range []string{s.store + "-missing", t.TempDir()} {
		configure(store)
		if out, err := s.tryCommand("upgrade", s.dir); err == nil || !strings.Contains(out, "the old version goes on") {
			t.Errorf("with the store %s: %v\n%s", store, err, out)
		}
	}
	h.close(fd)
	configure(s.store)
	if out := s.command("upgrade", s.dir); !strings.Contains(out, "is now") {
		t.Errorf("upgrade says %q", out)
	}
	s.untilClosed()
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkTexts(t, "queued", s.stored().pending, []string{record("open")})
}
