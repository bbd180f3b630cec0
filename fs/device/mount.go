package device

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// mountFlags are those of every mount of ours.
const mountFlags = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NOATIME

// openDirect opens /dev/fuse and makes a mount of it that is nowhere yet. Where
// that is not possible (before Linux 5.2, or forbidden by a filter of system
// calls) it is mounted at once.
func (d *Device) openDirect() (err error) {
	if d.FD, err = openFuse(); err != nil {
		return err
	}
	if d.mount, err = newMount(d.FD, d.source); err == nil {
		return nil
	}
	d.mount = -1
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return err
	}
	// The kernel ties a descriptor to the first file system that is made of it.
	unix.Close(d.FD)
	if d.FD, err = openFuse(); err != nil {
		return err
	}
	if err := popDead(d.dir); err != nil {
		return errors.Join(err, d.Close())
	}
	if err := mountOn(d.dir, d.FD, d.source); err != nil {
		return errors.Join(err, d.Close())
	}
	return nil
}

func openFuse() (int, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/fuse: %w%s", err, advice())
	}
	return fd, nil
}

// advice says what is missing on this machine for a mount.
func advice() string {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return " (there is no /dev/fuse here: load the fuse module, or give the container the device)"
	}
	if os.Geteuid() != 0 {
		return " (only root mounts without help: install fuse3 for fusermount3)"
	}
	return ""
}

// Attach makes the mount visible on its directory. If a dead mount is in the
// way, it is mounted beneath that, which is taken away then: the directory below
// is never visible, and no file can get lost in it. Where the kernel cannot do
// that (before 6.5) the dead mount goes first.
func (d *Device) Attach() error { return d.attach(mountBeneath) }

func (d *Device) attach(beneath func(mount int, dir string) error) error {
	if d.mount < 0 {
		return nil
	}
	dead, err := isDead(d.dir)
	if err != nil {
		return fmt.Errorf("mount on %q: %w", d.dir, err)
	}
	attached := false
	if dead {
		attached = beneath(d.mount, d.dir) == nil
		err = popDead(d.dir)
	}
	if err == nil && !attached {
		err = unix.MoveMount(d.mount, "", unix.AT_FDCWD, d.dir, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("mount on %q: %w", d.dir, err)
	}
	err = unix.Close(d.mount)
	d.mount = -1
	return err
}

// popDead takes away the topmost mount of a directory, if it is dead. Whoever
// mounted beneath it has a live one there then.
func popDead(dir string) error {
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	if !isDisconnected(err) {
		return nil
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("take away the dead mount: %w", err)
	}
	return nil
}

func isDisconnected(err error) bool {
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED)
}

// isDead reports whether a directory is the mountpoint of a daemon that is
// gone. It fails if the directory cannot be mounted on.
func isDead(dir string) (bool, error) {
	// Statfs asks the daemon; stat may be answered from the kernel's cache.
	var fs unix.Statfs_t
	switch err := unix.Statfs(dir, &fs); {
	case isDisconnected(err):
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
		return false, ErrMounted
	}
	return false, nil
}

// rootNode is the node id of the root of a FUSE file system.
const rootNode = 1

// ErrMounted says that a living file system is on the directory.
var ErrMounted = errors.New("a file system is mounted there already: unmount it first")

// mountOn is mount(2), which every kernel has.
func mountOn(dir string, fd int, source string) error {
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,max_read=%d", fd, MaxWrite)
	err := unix.Mount(source, dir, "fuse.spoolfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_NOATIME, options)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("%w (mounting needs the capability SYS_ADMIN)", err)
	}
	return err
}

// mountBeneath mounts beneath what is mounted on a directory.
func mountBeneath(mount int, dir string) error {
	const moveMountBeneath = 0x200 // MOVE_MOUNT_BENEATH, include/uapi/linux/mount.h
	return unix.MoveMount(mount, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH|moveMountBeneath)
}

// newMount makes a mount that is nowhere yet.
func newMount(fd int, source string) (int, error) {
	context, err := unix.Fsopen("fuse", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(context)
	for _, o := range [][2]string{
		{"source", source}, {"subtype", "spoolfs"}, {"fd", strconv.Itoa(fd)}, {"rootmode", "40000"},
		{"user_id", "0"}, {"group_id", "0"}, {"max_read", strconv.Itoa(MaxWrite)},
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
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, mountFlags)
}

// Detach takes the mount away. While files are open on it, it only disappears
// from the tree, and lives until the last descriptor of the device is closed.
func (d *Device) Detach() error {
	if d.mount >= 0 {
		return nil // nobody has seen it
	}
	if err := d.detach(); err != nil {
		return fmt.Errorf("unmount %q: %w", d.dir, err)
	}
	return nil
}

func (d *Device) detach() error {
	if !d.direct {
		return detachByHelper(d.dir)
	}
	err := unix.Unmount(d.dir, 0)
	if errors.Is(err, unix.EBUSY) {
		return unix.Unmount(d.dir, unix.MNT_DETACH)
	}
	return err
}
