package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMount_FullDisk: somebody else fills the disk of the store. Creates fail
// with ENOSPC before anything is written, and work again by themselves once
// there is room; nothing is lost and the daemon lives (D18).
func TestMount_FullDisk(t *testing.T) {
	s := newSpool(t, raceBinary, deadBroker, "--exchange", "x")
	if err := os.Mkdir(s.store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", s.store, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(s.store, unix.MNT_DETACH) })
	s.start()
	write := func() error {
		f, err := os.Create(filepath.Join(s.dir, "f"))
		if err != nil {
			return err
		}
		fmt.Fprintln(f, record("a"))
		return f.Close()
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(s.store, "somebody-elses")
	for round := range 3 {
		fillDisk(t, other)
		err := write()
		if err == nil || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
			t.Errorf("round %d: write with a full disk: %v", round, err)
		}
		if err := os.Remove(other); err != nil {
			t.Fatal(err)
		}
		s.until("writable", func() bool { return write() == nil })
	}
	s.untilIngested(4)
	if st := s.status(); st.Queue.Ready < 4 || st.Queue.Dead != 0 {
		t.Errorf("the queue is %+v", st.Queue)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// fillDisk writes a file until nothing more fits.
func fillDisk(t testing.TB, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
}
