package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"spoolfs/queue"
)

// checkStore looks at the store and changes nothing.
func (c *checkCommand) checkStore() []finding {
	const name = "store"
	warning, err := c.checkStorePlace()
	if err != nil {
		return []finding{failed(name, codeOf(err), "", "%s", c.origins.placed(err))}
	}
	var found []finding
	if warning != "" {
		found = append(found, warned(name, "", "%s", warning))
	}
	info, err := queue.Look(c.Store)
	switch {
	case errors.Is(err, queue.ErrNewerStore):
		return append(found, failed(name, exitConfig, "install the version that wrote it, or give another directory", "%s", err))
	case err != nil:
		return append(found, failed(name, permissionCode(err, exitIO), "see that it is a directory, and run this as the user of the daemon", "%s", err))
	}
	if f, bad := c.checkSpace(); bad {
		found = append(found, f)
	}
	return append(found, c.describeStore(info))
}

func (c *checkCommand) describeStore(info queue.StoreInfo) finding {
	const name = "store"
	dir := existingPart(c.Store)
	writable := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	st, statErr := os.Stat(dir)
	switch {
	case statErr == nil && !st.IsDir():
		return failed(name, exitCannot, "give another directory", "%s is no directory", dir)
	case writable != nil:
		return failed(name, permissionCode(writable, exitIO), "give the user of the daemon the right to write there, or another directory", "%s cannot be written: %s", dir, writable)
	case info.InUse && info.Owner != 0:
		return good(name, "%s is of version %d, and in use by process %d", c.Store, info.Format, info.Owner)
	case info.InUse:
		return good(name, "%s is of version %d, and in use by a process of another container", c.Store, info.Format)
	case info.Exists:
		return good(name, "%s is of version %d, and not in use", c.Store, info.Format)
	}
	return good(name, "%s is not there yet, and will be made", c.Store)
}

// checkSpace looks whether there is room for what the store may hold.
func (c *checkCommand) checkSpace() (found finding, bad bool) {
	const name, least = "store", 64 << 20
	var st unix.Statfs_t
	if err := unix.Statfs(existingPart(c.Store), &st); err != nil {
		return failed(name, exitIO, "", "statfs: %s", err), true
	}
	free := st.Bavail * uint64(st.Bsize)
	const advice = "free some, or give a smaller --max-bytes"
	switch total := st.Blocks * uint64(st.Bsize); {
	case free < min(least, total/16):
		return failed(name, exitIO, "free some: nothing is taken before", "%s are free on its file system", size(free)), true
	case c.MaxBytes > 0 && uint64(c.MaxBytes) > total:
		return warned(name, advice, "it may grow to %s, and its file system has %s", c.MaxBytes, size(total)), true
	case free < least*4:
		return warned(name, advice, "only %s are free on its file system", size(free)), true
	}
	return finding{}, false
}
