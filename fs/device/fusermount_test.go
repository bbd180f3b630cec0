package device

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// userEnv makes the test binary a user's program that mounts on a directory.
const userEnv = "SPOOLFS_TEST_USER_MOUNT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(userEnv); dir != "" {
		do := mountAsUser
		if os.Geteuid() == 0 {
			do = becomeUser
		}
		if err := do(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const nobody = 65534

// becomeUser runs the program as a user, in a mount namespace of its own in which
// everybody may open /dev/fuse, as on most machines.
func becomeUser(dir string) error {
	node := filepath.Join(filepath.Dir(dir), "fuse")
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 229))),
		os.Chmod(node, 0o666),
		unix.Mount(node, "/dev/fuse", "", unix.MS_BIND, ""),
	)
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = os.Environ()
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd.Run()
}

// mountAsUser mounts, replaces the dead mount of a device that is closed, and
// unmounts.
func mountAsUser(dir string) error {
	first, err := Open(dir)
	if err != nil {
		return err
	}
	if err := first.Close(); err != nil {
		return err
	}
	d, err := Open(dir)
	if err != nil {
		return fmt.Errorf("over a dead mount: %w", err)
	}
	stop := serve(d)
	if err := unix.Access(filepath.Join(dir, "x"), unix.F_OK); !errors.Is(err, unix.EIO) {
		return fmt.Errorf("in the mount: %w, want the EIO of the server", err)
	}
	stop()
	if err := d.Detach(); err != nil {
		return err
	}
	if dead, err := isDead(dir); dead || err != nil {
		return fmt.Errorf("after Detach the directory is dead: %t, %w", dead, err)
	}
	return d.Close()
}

// TestDevice_FusermountMounts: who is not root mounts with fusermount3.
func TestDevice_FusermountMounts(t *testing.T) {
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), userEnv+"="+dir, "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
