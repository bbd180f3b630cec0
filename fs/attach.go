package fs

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// attach opens /dev/fuse and mounts it on a directory, and returns the
// descriptor to serve. Requests wait until it is served.
func attach(dir string) (int, error) {
	stale, err := isDead(dir)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/fuse: %w%s", err, mountAdvice())
	}
	if stale {
		err = replaceDead(dir, fd)
	} else {
		err = mountOn(dir, fd)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// isDead reports whether a directory is the mountpoint of a daemon that is
// gone. It fails if the directory cannot be mounted on.
func isDead(dir string) (bool, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, syscall.ENOTCONN), errors.Is(err, syscall.ECONNABORTED):
		return true, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, fmt.Errorf("%q: %w", dir, syscall.ENOTDIR)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return false, err
	}
	// The root of a file system is node 1 of FUSE and nothing else here.
	if st := info.Sys().(*syscall.Stat_t); fs.Type == unix.FUSE_SUPER_MAGIC && st.Ino == rootNode {
		return false, errors.New("a file system is mounted there already: unmount it first")
	}
	return false, nil
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

// replaceDead mounts beneath the dead mount and takes that away then, so that
// the directory below is never visible and no file can get lost in it. Kernels
// before 6.5 cannot do that: there the dead mount goes first.
func replaceDead(dir string, fd int) error {
	if err := mountBeneath(dir, fd); err == nil {
		return unix.Unmount(dir, unix.MNT_DETACH)
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("take away the dead mount: %w", err)
	}
	return mountOn(dir, fd)
}

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
