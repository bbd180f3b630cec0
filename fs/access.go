package fs

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// The mount is without default_permissions, so what a user may do is decided
// here. See DESIGN.md, sections 4 and 6.

// mayUse refuses a node of the status tree to those who may not look into it:
// numbers are for everybody, contents and commands for operators.
func (t *statusTree) mayUse(id statusID, c *fuse.Caller) error {
	if t.isPublic(id) || t.isOperator(c) {
		return nil
	}
	return syscall.EACCES
}

// isPublic reports whether a node is for everybody.
func (t *statusTree) isPublic(id statusID) bool {
	return id.kind != kindFlat || !t.flat(id).Private
}

// isOperator reports whether a caller is root or in the group of the operators.
func (t *statusTree) isOperator(c *fuse.Caller) bool {
	return c.Uid == 0 || t.fs.opts.StatusGroup != 0 && inGroup(c, t.fs.opts.StatusGroup)
}

// statusMode is the mode of a node, as ls shows it.
func (t *statusTree) statusMode(id statusID) uint32 {
	switch {
	case id.isDir():
		return syscall.S_IFDIR | 0o555
	case t.isPublic(id):
		return syscall.S_IFREG | 0o444
	}
	return syscall.S_IFREG | 0o440
}

// inGroup reports whether a caller has a group, as its own or as one of the
// others, which a request does not carry.
func inGroup(c *fuse.Caller, gid uint32) bool {
	if c.Gid == gid {
		return true
	}
	if c.Pid == 0 {
		return false // outside of our pid namespace: nothing is known of it
	}
	// The caller waits for this answer, so its number is not another's yet.
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", c.Pid))
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if groups, ok := strings.CutPrefix(lines.Text(), "Groups:"); ok {
			return slices.Contains(strings.Fields(groups), strconv.FormatUint(uint64(gid), 10))
		}
	}
	return false
}
