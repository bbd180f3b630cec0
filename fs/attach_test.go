package fs

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// deadMount makes a directory with the mount of a daemon that is gone.
func deadMount(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("mounting needs root")
	}
	dir := t.TempDir()
	fd, err := attach(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for unix.Unmount(dir, unix.MNT_DETACH) == nil {
			continue
		}
	})
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if dead, err := isDead(dir); err != nil || !dead {
		t.Fatalf("isDead is %t, %v", dead, err)
	}
	return dir
}

// TestReplaceDead: a dead mount is replaced, also by a kernel that can not mount
// beneath it, which fails after it has used the descriptor up.
func TestReplaceDead(t *testing.T) {
	unable := func(dir string, fd int) error {
		mount, err := newMount(fd)
		return errors.Join(err, unix.Close(mount), unix.EINVAL)
	}
	for name, beneath := range map[string]func(string, int) error{"beneath": mountBeneath, "old kernel": unable} {
		t.Run(name, func(t *testing.T) {
			dir := deadMount(t)
			fd, err := replaceDead(dir, beneath)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Close(fd); err != nil {
				t.Fatal(err)
			}
			if dead, err := isDead(dir); err != nil || !dead {
				t.Errorf("the new mount, with its descriptor closed: isDead is %t, %v", dead, err)
			}
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
			if dead, err := isDead(dir); err != nil || dead {
				t.Errorf("below the new mount: isDead is %t, %v", dead, err)
			}
		})
	}
}
