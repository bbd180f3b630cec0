package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unmountCommand is "spoolfs unmount".
type unmountCommand struct {
	Timeout time.Duration `default:"1m" env:"-" placeholder:"DURATION" help:"How long the daemon may take for it (${default})."`
	Force   bool          `env:"-" help:"Take the mount away without asking the daemon, for one that hangs. What is open then fails; what was closed is safe."`
	All     bool          `env:"-" help:"All spools that run this program: before it is removed."`
	Service string        `env:"-" hidden:"" placeholder:"UNIT" help:"Of the service that systemd stops."`
	target
}

// Help is shown by kong.
func (*unmountCommand) Help() string {
	return `The daemon ends as with SIGTERM: it takes no new files, lets open ones
finish, sends what the broker takes within its limits, unmounts and exits.
What is not sent is in the store and goes out after the next start. A dead
mount that a crash has left is taken away.

Examples:

    spoolfs unmount /run/spool
    spoolfs unmount --force /run/spool     # the daemon does not answer
`
}

// Run is called by kong.
func (c *unmountCommand) Run(env *environment) error {
	switch {
	case c.Service != "":
		return c.stopService(env)
	case c.All:
		return c.each(env, "unmount", func(cl *client) error { return c.unmount(env, cl) })
	}
	cl, err := c.open(env)
	if err != nil {
		return err
	}
	defer cl.close()
	return c.unmount(env, cl)
}

func (c *unmountCommand) unmount(env *environment, cl *client) (err error) {
	if c.Force {
		err = cl.takeAway(true)
	} else if err = cl.command("unmount"); errors.Is(err, syscall.ENOTCONN) || errors.Is(err, syscall.ECONNABORTED) {
		err = cl.takeAway(false) // dead, or the daemon was quicker than its answer
	}
	if err != nil {
		if errors.Is(err, errHung) {
			err = fmt.Errorf("%w. \"spoolfs unmount --force\" takes the mount away without it", err)
		}
		return err
	}
	if err := cl.awaitUnmounted(c.Timeout); err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s: unmounted\n", cl.mount.Mountpoint)
	return nil
}

// awaitUnmounted waits until the mount is not there any more.
func (c *client) awaitUnmounted(timeout time.Duration) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	for {
		mounts, err := readMounts()
		if err != nil {
			return withCode(exitIO, err)
		}
		if m, ok := mountAt(mounts, c.mount.Mountpoint); !ok || m.ID != c.mount.ID {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return withCode(exitTemporary, fmt.Errorf("%s is still mounted after %s: its daemon waits for open files or for the broker, see its log; --force does not wait", c.mount.Mountpoint, timeout))
		}
	}
}

// takeAway unmounts without the daemon. If it may still live, its connection is
// cut first, so that those who wait for it get an error instead of waiting on.
func (c *client) takeAway(cut bool) error {
	if c.isUnmounted() {
		return nil
	}
	if os.Geteuid() != 0 {
		return c.fusermount()
	}
	if cut {
		_, minor, _ := strings.Cut(c.mount.Device, ":")
		_ = os.WriteFile("/sys/fs/fuse/connections/"+minor+"/abort", []byte("1"), 0) // where fusectl is mounted
	}
	if err := c.mount.detach(); err != nil && !c.isUnmounted() {
		return withCode(exitIO, fmt.Errorf("unmount %s: %w", c.mount.Mountpoint, err))
	}
	return nil
}

// errOtherMount says that a path leads to something else than before.
var errOtherMount = errors.New("the path leads elsewhere by now")

// detach takes this very mount away: whoever owns a directory on the way to it can have the
// path lead to any other one. Opened as a path, it is not asked.
func (m spoolMount) detach() error {
	fd, err := unix.Open(m.Mountpoint, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return err
	}
	if id := fmt.Sprintf("mnt_id:\t%d\n", m.ID); !strings.Contains(string(info), id) {
		return errOtherMount
	}
	return unix.Unmount(fmt.Sprintf("/proc/self/fd/%d", fd), unix.MNT_DETACH)
}

// fusermount unmounts as a user can: what the user has mounted.
func (c *client) fusermount() error {
	ctx, cancel := context.WithTimeout(c.ctx, c.access.within)
	defer cancel()
	out, err := exec.CommandContext(ctx, "fusermount3", "-uz", "--", c.mount.Mountpoint).CombinedOutput()
	if err != nil {
		return withCode(exitPermission, fmt.Errorf("unmount %s: %w: %s", c.mount.Mountpoint, err, strings.TrimSpace(string(out))))
	}
	return nil
}
