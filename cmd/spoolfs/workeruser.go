package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// workerUser is the user of the workers; nil if it is ours. The store is made for
// it, or must belong to it.
func (c *mountCommand) workerUser() (*syscall.Credential, error) {
	if c.User == "" {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, badSetting("user", "only root can run the daemon as somebody else")
	}
	credential, err := credentialOf(c.User)
	if err != nil {
		return nil, err
	}
	if err := ownStore(c.Store, c.User, credential); err != nil {
		return nil, err
	}
	return credential, nil
}

// credentialOf finds a user by name or number, with all its groups.
func credentialOf(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return nil, badSetting("user", "there is no user %q", name)
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, badSetting("user", "%q has the number %q", name, u.Uid)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, badSetting("user", "%q has the group %q", name, u.Gid)
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, badSetting("user", "the groups of %q: %v", name, err)
	}
	for _, g := range groups {
		if n, err := strconv.ParseUint(g, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(n))
		}
	}
	return c, nil
}

// ownStore makes the store for a user, or sees that it belongs to it: a daemon
// that fails in the middle, as root's files come up, would be the worse surprise.
func ownStore(store, name string, c *syscall.Credential) error {
	if err := os.MkdirAll(filepath.Dir(store), 0o755); err != nil {
		return withCode(exitCannot, fmt.Errorf("make the store: %w", err))
	}
	err := os.Mkdir(store, 0o700)
	if err == nil {
		err = os.Chown(store, int(c.Uid), int(c.Gid))
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return withCode(exitCannot, fmt.Errorf("make the store: %w", err))
	}
	entries, err := os.ReadDir(store)
	if err != nil {
		return withCode(exitIO, err)
	}
	if len(entries) == 0 { // as systemd makes it
		if err := os.Chown(store, int(c.Uid), int(c.Gid)); err != nil {
			return withCode(exitCannot, fmt.Errorf("make the store: %w", err))
		}
	}
	paths := []string{store}
	for _, e := range entries {
		paths = append(paths, filepath.Join(store, e.Name()))
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // a daemon that still ends
		}
		if err != nil {
			return withCode(exitIO, err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != c.Uid {
			return withCode(exitConfig, fmt.Errorf("%s belongs to user %d, and the daemon is to run as %s: stop the spool and run chown -R %s %s",
				path, st.Uid, name, name, store))
		}
	}
	return nil
}
