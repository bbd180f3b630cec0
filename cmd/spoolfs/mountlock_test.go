package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMountLock: there is one lock for a mountpoint, by whatever path, and it is
// free again when it is closed.
func TestMountLock(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", strings.Repeat("n", 255)} {
		if err := os.MkdirAll(filepath.Join(dir, "real", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("real", filepath.Join(dir, "link")), os.Symlink("real/a", filepath.Join(dir, "a"))); err != nil {
		t.Fatal(err)
	}
	lock, err := lockMountpoint(filepath.Join(dir, "real/a"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, same := range []string{"real/a", "link/a", "a"} {
			if _, err := lockMountpoint(filepath.Join(dir, same)); !errors.Is(err, errMountpointInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
				t.Errorf("%s: got %v", same, err)
			}
		}
	}
	for _, other := range []string{"real/b", "link/" + strings.Repeat("n", 255)} {
		if l, err := lockMountpoint(filepath.Join(dir, other)); err != nil || l.Close() != nil {
			t.Errorf("%s: got %v", other, err)
		}
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err := lockMountpoint(filepath.Join(dir, "link/a")); err != nil || l.Close() != nil {
		t.Errorf("after the close: %v", err)
	}
}

// TestMountLock_Squatter: an ordinary user who takes the name of the lock stops
// nobody.
func TestMountLock_Squatter(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to be another user")
	}
	dir := t.TempDir()
	name, err := mountpointName(dir)
	if err != nil {
		t.Fatal(err)
	}
	squatter := exec.Command("/usr/bin/python3", "-c", `import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1].replace("@", "\0", 1)); s.listen(); print("taken", flush=True); sys.stdin.read()`, name)
	squatter.Dir = "/"
	squatter.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	in, err := squatter.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := squatter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := squatter.Start(); err != nil {
		t.Fatal(err)
	}
	defer squatter.Wait()
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "taken\n" {
		t.Fatal(line, err)
	}
	if _, err := lockMountpoint(dir); err != nil {
		t.Errorf("got %v", err)
	}
}
