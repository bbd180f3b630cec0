package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFileSystemOfType: network file systems are told from disks, with the
// numbers that the kernel's headers have.
func TestFileSystemOfType(t *testing.T) {
	for kind, want := range map[int64]placement{
		unix.NFS_SUPER_MAGIC: onNetwork, unix.SMB_SUPER_MAGIC: onNetwork, unix.SMB2_SUPER_MAGIC: onNetwork, unix.CIFS_SUPER_MAGIC: onNetwork,
		unix.FUSE_SUPER_MAGIC: onNetwork, unix.CEPH_SUPER_MAGIC: onNetwork, unix.V9FS_MAGIC: onNetwork, unix.AFS_SUPER_MAGIC: onNetwork,
		unix.AFS_FS_MAGIC: onNetwork, unix.OCFS2_SUPER_MAGIC: onNetwork, unix.CODA_SUPER_MAGIC: onNetwork, unix.NCP_SUPER_MAGIC: onNetwork,
		0x0bd00bd0: onNetwork, 0x47504653: onNetwork, 0x01161970: onNetwork, 0x19830326: onNetwork, // Lustre, GPFS, GFS2, BeeGFS have no header
		-0xacb2be:        onNetwork, // CIFS with the sign extended
		unix.TMPFS_MAGIC: inMemory, unix.RAMFS_MAGIC: inMemory,
		unix.EXT4_SUPER_MAGIC: onDisk, unix.XFS_SUPER_MAGIC: onDisk, unix.BTRFS_SUPER_MAGIC: onDisk, unix.F2FS_SUPER_MAGIC: onDisk,
		unix.OVERLAYFS_SUPER_MAGIC: onDisk, 0x2fc12fc1: onDisk, // ZFS
	} {
		if got := fileSystemOfType(kind); got.place != want || got.name == "" {
			t.Errorf("%#x is %+v, want place %d", kind, got, want)
		}
	}
}

// TestFileSystemOf: the place of a store that is not there yet is that of the
// directory that it will be in.
func TestFileSystemOf(t *testing.T) {
	for path, want := range map[string]placement{"/dev/shm/a/b/c": inMemory, "/proc/self": onDisk} {
		if got, err := fileSystemOf(path); err != nil || got.place != want {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
	}
	c := mountCommand{Store: "/dev/shm/a/b/c"}
	if warning, err := c.checkStorePlace(); err != nil || !strings.Contains(warning, "tmpfs") {
		t.Errorf("got %q, %v", warning, err)
	}
}
