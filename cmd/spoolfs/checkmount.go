package main

import (
	"errors"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// mountPatience is how long a file system may take to answer.
const mountPatience = 5 * time.Second

// checkMountpoint looks whether a spool can be mounted.
func (c *checkCommand) checkMountpoint() []finding {
	const name = "mountpoint"
	lock, err := mountpointName(c.Mountpoint)
	if err != nil {
		return []finding{failed(name, exitCannot, "", "%s", err)}
	}
	if owner, err := ownerOf(lock); err == nil && (owner.Uid == 0 || int(owner.Uid) == os.Geteuid()) {
		return []finding{good(name, "%s is served by process %d", c.Mountpoint, owner.Pid)}
	}
	found := checkMeans()
	return append(found, c.checkDirectory())
}

// checkMeans looks at what a mount needs of the machine.
func checkMeans() []finding {
	const name = "mountpoint"
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return []finding{failed(name, exitCannot, "load the fuse module, or give the container the device", "there is no /dev/fuse")}
	}
	if os.Geteuid() == 0 {
		return nil
	}
	if _, err := exec.LookPath("fusermount3"); err != nil {
		return []finding{failed(name, exitPermission, "install fuse3 for fusermount3, or run this as root", "an ordinary user cannot mount without help")}
	}
	return []finding{warned(name, "run it as root for all users", "mounted by an ordinary user, it is for this user alone")}
}

// checkDirectory looks at the directory itself.
func (c *checkCommand) checkDirectory() finding {
	const name = "mountpoint"
	answer := make(chan finding, 1)
	go func() { answer <- c.lookAtDirectory() }()
	late := time.NewTimer(mountPatience)
	defer late.Stop()
	select {
	case f := <-answer:
		return f
	case <-late.C:
		return failed(name, exitCannot, "end that daemon, and unmount it with umount -l", "what is mounted on %s does not answer", c.Mountpoint)
	}
}

func (c *checkCommand) lookAtDirectory() finding {
	const name = "mountpoint"
	var st unix.Statfs_t
	if err := unix.Statfs(c.Mountpoint, &st); errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED) {
		return warned(name, "nothing: the next start replaces it", "%s is the dead mount of a daemon that is gone", c.Mountpoint)
	}
	info, err := os.Stat(c.Mountpoint)
	switch {
	case err != nil:
		return failed(name, permissionCode(err, exitCannot), "", "%s", err)
	case !info.IsDir():
		return failed(name, exitCannot, "give a directory", "%s is no directory", c.Mountpoint)
	}
	var root unix.Stat_t
	// The root of a file system is node 1 of FUSE and nothing else here.
	if unix.Stat(c.Mountpoint, &root) == nil && st.Type == unix.FUSE_SUPER_MAGIC && root.Ino == 1 {
		return failed(name, exitCannot, "unmount it first", "a file system is mounted on %s already", c.Mountpoint)
	}
	names, err := os.ReadDir(c.Mountpoint)
	switch {
	case err != nil:
		return warned(name, "run this as root", "it cannot be seen whether %s is empty: %s", c.Mountpoint, err)
	case len(names) > 0:
		return warned(name, "see to these files first", "%s has %s, such as %s, which the mount will hide", c.Mountpoint, plural(len(names), "file"), names[0].Name())
	}
	return good(name, "%s is there, and empty", c.Mountpoint)
}
