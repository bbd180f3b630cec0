package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A placement is where a file system keeps its files.
type placement uint8

const (
	onDisk    placement = iota // on a disk of this machine, as far as is known
	inMemory                   // gone with the next start of the machine
	onNetwork                  // on another machine, or shared with one
)

// fileSystem is a kind of file system.
type fileSystem struct {
	name  string
	place placement
}

// fileSystems are those that are no place for a store, by the f_type of
// statfs(2). On a network locks may be no locks, a sync may be none, and a
// server that hangs would hang every writer.
var fileSystems = map[int64]fileSystem{
	0x6969:     {"NFS", onNetwork},
	0x517b:     {"SMB", onNetwork},
	0xfe534d42: {"SMB", onNetwork},
	0xff534d42: {"CIFS", onNetwork},
	0x0bd00bd0: {"Lustre", onNetwork},
	0x47504653: {"GPFS", onNetwork},
	0x65735546: {"FUSE", onNetwork}, // most are; virtiofs is one, too
	0x00c36400: {"Ceph", onNetwork},
	0x01021997: {"9p", onNetwork},
	0x5346414f: {"AFS", onNetwork},
	0x6b414653: {"AFS", onNetwork},
	0x7461636f: {"OCFS2", onNetwork},
	0x01161970: {"GFS2", onNetwork},
	0x19830326: {"BeeGFS", onNetwork},
	0x20030528: {"OrangeFS", onNetwork},
	0xaad7aaea: {"PanFS", onNetwork},
	0xbeefdead: {"StorNext", onNetwork},
	0x013111a8: {"IBRIX", onNetwork},
	0x61636673: {"ACFS", onNetwork},
	0xa501fcf5: {"VxFS", onNetwork},
	0x73757245: {"Coda", onNetwork},
	0x564c:     {"NCP", onNetwork},
	0x786f4256: {"VirtualBox's shared folders", onNetwork},
	0xbacbacbc: {"VMware's shared folders", onNetwork},
	0x7c7c6673: {"Parallels' shared folders", onNetwork},

	0x01021994: {"tmpfs", inMemory},
	0x858458f6: {"ramfs", inMemory},
	0x958458f6: {"hugetlbfs", inMemory},
}

// fileSystemOf is the kind of file system that a path is on, or would be when it
// is made. The name of a kind that is as good as another is its number.
func fileSystemOf(path string) (fileSystem, error) {
	dir := existingPart(path)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fileSystem{}, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return fileSystemOfType(st.Type), nil
}

func fileSystemOfType(kind int64) fileSystem {
	kind &= 0xffffffff // some kernels extend the sign
	if fs, known := fileSystems[kind]; known {
		return fs
	}
	return fileSystem{fmt.Sprintf("a file system of type %#x", kind), onDisk}
}

// existingPart is the longest part of an absolute path that is there.
func existingPart(path string) string {
	for path != filepath.Dir(path) {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

// checkStorePlace refuses a store that is not on a disk of this machine, unless
// the operator wants it so. A warning is what should be known all the same.
func (c *mountCommand) checkStorePlace() (warning string, err error) {
	fs, err := fileSystemOf(c.Store)
	if err != nil {
		return "", withCode(exitIO, err)
	}
	switch {
	case fs.place == onNetwork && !c.NetworkStore:
		return "", badSetting("store", "%s is on %s, and a store belongs on a disk of this machine: a server that is away would stop every writer, and locks and syncs may mean less there. Give another directory, or --network-store if you know that it is good", c.Store, fs.name)
	case fs.place == onNetwork:
		return fmt.Sprintf("the store is on %s, as --network-store allows: writers depend on it", fs.name), nil
	case fs.place == inMemory:
		return fmt.Sprintf("the store is on %s: what is not sent is gone with the next start of the machine", fs.name), nil
	}
	return "", nil
}
