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
// here and nowhere else:
//
//   - A name exists for its user alone, root included: see nameKey.
//   - Directories are the same for all, and their modes decide.
//   - Only root changes the owner of something, and that of a file only for
//     show: the name stays with the user who made it.
//   - Of the status tree, numbers are for everybody, and contents and commands
//     for root, a group, and the user whose daemon it is.

// The bits of a mode, for one class of users.
const (
	mayRead   = 4
	mayWrite  = 2
	maySearch = 1
)

// allowsLocked reports whether a directory gives a caller all of some bits.
func (d *dir) allowsLocked(c *fuse.Caller, bits uint32) bool {
	mode := d.mode
	switch {
	case c.Uid == 0:
		return true
	case c.Uid == d.uid:
		mode >>= 6
	case mode>>3&7 == mode&7:
		// No need to look for groups.
	case inGroup(c, d.gid):
		mode >>= 3
	}
	return mode&bits == bits
}

// mayUseLocked checks the bits of a directory, and that the caller gets there: the
// kernel keeps what it knows of directories for all users, so that it does not
// ask about each on the way.
func (d *dir) mayUseLocked(c *fuse.Caller, bits uint32) error {
	if !d.allowsLocked(c, bits) {
		return syscall.EACCES
	}
	for ; d != nil; d = d.parent {
		if !d.allowsLocked(c, maySearch) {
			return syscall.EACCES
		}
	}
	return nil
}

// mayMoveLocked checks that a caller may remove or rename a directory.
func (d *dir) mayMoveLocked(c *fuse.Caller) error {
	switch {
	case d.isTop():
		return syscall.EBUSY
	case d.standing || d.parent == nil:
		return syscall.EPERM
	case d.parent.mode&syscall.S_ISVTX != 0 && c.Uid != 0 && c.Uid != d.uid && c.Uid != d.parent.uid:
		return syscall.EPERM
	}
	return d.parent.mayUseLocked(c, mayWrite)
}

// mayTouchLocked checks that a caller may change the attributes of a directory.
func (d *dir) mayTouchLocked(c *fuse.Caller) error {
	if d.standing || d.isTop() || d.parent == nil || c.Uid != 0 && c.Uid != d.uid {
		return syscall.EPERM
	}
	return nil
}

// mayTouchLocked checks that a caller may change the attributes of a file. One
// who is not its user has it from an inherited descriptor.
func (n *node) mayTouchLocked(c *fuse.Caller) error {
	if c.Uid != 0 && c.Uid != n.key.uid {
		return syscall.EPERM
	}
	return nil
}

// mayChown checks a change of owner and group of what belongs to owner.
func mayChown(in *fuse.SetAttrIn, owner, group uint32) error {
	c := &in.Caller
	if uid, ok := in.GetUID(); ok && uid != owner && c.Uid != 0 {
		return syscall.EPERM
	}
	if gid, ok := in.GetGID(); ok && gid != group && c.Uid != 0 && !inGroup(c, gid) {
		return syscall.EPERM
	}
	return nil
}

// mayUse refuses a node of the status tree to those who may not look into it:
// numbers are for everybody, contents and commands for operators, and the names
// that a user has open for himself too. What is open nobody reads.
func (t *statusTree) mayUse(id statusID, c *fuse.Caller) error {
	if t.isPublic(id) || t.isOperator(c) || id.kind == kindUserDir && id.number == uint64(c.Uid) {
		return nil
	}
	return syscall.EACCES
}

// isPublic reports whether a node is for everybody.
func (t *statusTree) isPublic(id statusID) bool {
	switch id.kind {
	case kindRoot, kindRoutes, kindRoute, kindOpenDir:
		return true
	case kindFlat, kindPage:
		return !t.flat(id).Private
	}
	return false
}

// isOperator reports whether a caller is root, the user who runs the daemon and
// could do as much with the store, or in the group of the operators.
func (t *statusTree) isOperator(c *fuse.Caller) bool {
	return c.Uid == 0 || c.Uid == uint32(os.Geteuid()) || t.fs.tuned.Load().StatusGroup != 0 && inGroup(c, t.fs.tuned.Load().StatusGroup)
}

// statusMode is the mode of a node, as ls shows it.
func (t *statusTree) statusMode(id statusID) uint32 {
	mode := uint32(0o440)
	switch {
	case id.kind == kindControl, t.takesWrites(id):
		mode = 0o660
	case id.holdsMessages():
		mode = 0o770
	case id.kind == kindUserDir:
		mode = 0o550
	case id.isDir():
		mode = 0o555
	case t.isPublic(id):
		mode = 0o444
	}
	if id.isDir() {
		return syscall.S_IFDIR | mode
	}
	return syscall.S_IFREG | mode
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
