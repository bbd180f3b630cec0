package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMount_TwoDaemons: a second daemon on a store or on a mountpoint is refused,
// and told which process is the first, also while that is stopped; when it has
// been killed, the next one starts.
func TestMount_TwoDaemons(t *testing.T) {
	first := startSpool(t, "stdout:")
	sameStore, sameMount := newSpool(t, raceBinary, "stdout:"), newSpool(t, raceBinary, "stdout:")
	sameStore.args[slices.Index(sameStore.args, sameStore.store)] = first.store
	sameMount.dir = first.dir
	owners := map[string]int{"store is in use": first.daemonPID(), "mountpoint is in use": first.cmd.Process.Pid}
	for _, state := range []string{"running", "stopped"} {
		if state == "stopped" {
			first.signal(syscall.SIGSTOP)
		}
		sameStore.launch() // both at once, as each waits for a while
		sameMount.launch()
		for what, s := range map[string]*spool{"store is in use": sameStore, "mountpoint is in use": sameMount} {
			who := fmt.Sprintf("process %d", owners[what])
			if code := s.wait(); code != 75 || !strings.Contains(s.stderr.String(), what) || !strings.Contains(s.stderr.String(), who) {
				t.Errorf("first is %s: code %d, want 75, %q and %q in\n%s", state, code, what, who, s.stderr)
			}
		}
	}
	if _, err := os.Stat(sameMount.store); err == nil {
		t.Error("the store of the refused one was made")
	}
	first.signal(syscall.SIGCONT)
	first.sh(fmt.Sprintf(`echo '%s' > $M/f`, record("a")))
	first.until("sent", func() bool { return len(first.published()) == 1 })
	first.kill()
	sameMount.start() // on the dead mount that the first has left
	sameMount.sh(fmt.Sprintf(`echo '%s' > $M/f`, record("b")))
	sameMount.until("sent", func() bool { return len(sameMount.published()) == 1 })
	sameStore.start()
}

// TestMount_StoreOnNetwork: a store on what may be a network file system is
// refused before anything is made there. (The FUSE mount is our own.)
func TestMount_StoreOnNetwork(t *testing.T) {
	other := startSpool(t, "stdout:")
	s := newSpool(t, raceBinary, "stdout:")
	s.args[slices.Index(s.args, s.store)] = filepath.Join(other.dir, "store")
	s.launch()
	if code := s.wait(); code != 64 || !strings.Contains(s.stderr.String(), "is on FUSE, and a store belongs on a disk") || !strings.Contains(s.stderr.String(), "--network-store") {
		t.Errorf("code %d\n%s", code, s.stderr)
	}
	if names := other.names(); !slices.Equal(names, []string{".status"}) {
		t.Errorf("made %v", names)
	}
}

// TestMount_StoreInMemory: a store on tmpfs is taken, with a warning.
func TestMount_StoreInMemory(t *testing.T) {
	s := newSpool(t, raceBinary, "stdout:")
	if err := os.Mkdir(s.store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", s.store, "tmpfs", 0, "size=128m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(s.store, unix.MNT_DETACH) })
	s.start()
	if !strings.Contains(s.stderr.String(), "level=WARN msg=\"the store is on tmpfs") {
		t.Errorf("the log is\n%s", s.stderr)
	}
	s.stop()
}
