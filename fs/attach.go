package fs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// attach opens /dev/fuse and mounts it on a directory, and returns the
// descriptor to serve. Requests wait until it is served.
func attach(dir string) (int, error) {
	dead, err := isDead(dir)
	if err != nil {
		return -1, err
	}
	if dead {
		return replaceDead(dir, mountBeneath)
	}
	return openMounted(dir, mountOn)
}

// replaceDead mounts beneath a dead mount and takes that away then: the
// directory below is never visible, and no file can get lost in it. Where the
// kernel cannot do that (before 6.5) the dead mount goes first.
func replaceDead(dir string, beneath func(dir string, fd int) error) (int, error) {
	fd, err := openMounted(dir, beneath)
	if e := unix.Unmount(dir, unix.MNT_DETACH); e != nil {
		return -1, fmt.Errorf("take away the dead mount: %w", e)
	}
	if err == nil {
		return fd, nil
	}
	return openMounted(dir, mountOn)
}

// openMounted opens /dev/fuse and mounts it. A descriptor is good for one
// attempt: the kernel ties it to the first file system that is made of it.
func openMounted(dir string, mount func(dir string, fd int) error) (int, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/fuse: %w%s", err, mountAdvice())
	}
	if err := mount(dir, fd); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// isDead reports whether a directory is the mountpoint of a daemon that is
// gone. It fails if the directory cannot be mounted on.
func isDead(dir string) (bool, error) {
	// Statfs asks the daemon; stat may be answered from the kernel's cache.
	var fs unix.Statfs_t
	switch err := unix.Statfs(dir, &fs); {
	case errors.Is(err, unix.ENOTCONN), errors.Is(err, unix.ECONNABORTED):
		return true, nil
	case err != nil:
		return false, err
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, fmt.Errorf("%q: %w", dir, syscall.ENOTDIR)
	}
	// The root of a file system is node 1 of FUSE and nothing else here.
	if st := info.Sys().(*syscall.Stat_t); fs.Type == unix.FUSE_SUPER_MAGIC && st.Ino == rootNode {
		return false, errors.New("a file system is mounted there already: unmount it first")
	}
	return false, nil
}

// detachDead takes away a dead mount of this user, with fusermount3.
func detachDead(dir string) error {
	dead, err := isDead(dir)
	if err != nil || !dead {
		return err
	}
	if out, err := exec.Command("fusermount3", "-uz", "--", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("take away the dead mount: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// mountOn is mount(2), which every kernel has.
func mountOn(dir string, fd int) error {
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,max_read=%d", fd, maxWrite)
	err := unix.Mount("spoolfs", dir, "fuse.spoolfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_NOATIME, options)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%w (mounting needs the capability SYS_ADMIN)", err)
	}
	return err
}

// mountBeneath mounts beneath what is mounted on a directory.
func mountBeneath(dir string, fd int) error {
	mount, err := newMount(fd)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	const moveMountBeneath = 0x200 // MOVE_MOUNT_BENEATH, include/uapi/linux/mount.h
	return unix.MoveMount(mount, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH|moveMountBeneath)
}

// newMount makes a mount that is nowhere yet.
func newMount(fd int) (int, error) {
	context, err := unix.Fsopen("fuse", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(context)
	for _, o := range [][2]string{
		{"source", "spoolfs"}, {"subtype", "spoolfs"}, {"fd", strconv.Itoa(fd)}, {"rootmode", "40000"},
		{"user_id", "0"}, {"group_id", "0"}, {"max_read", strconv.Itoa(maxWrite)},
	} {
		if err := unix.FsconfigSetString(context, o[0], o[1]); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigSetFlag(context, "allow_other"); err != nil {
		return -1, err
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, err
	}
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC,
		unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_NOATIME)
}
