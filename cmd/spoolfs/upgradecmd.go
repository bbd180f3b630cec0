package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// upgradeCommand is "spoolfs upgrade".
type upgradeCommand struct {
	Timeout time.Duration `default:"2m" env:"-" placeholder:"DURATION" help:"How long the new version may take to serve (${default})."`
	All     bool          `env:"-" help:"All spools that run this program: after it was replaced."`
	target
}

// Help is shown by kong.
func (*upgradeCommand) Help() string {
	return `Keeper and daemon of the mount are replaced by the program that lies where they
were started from. For writers it is a pause of a fraction of a second. The new
program is tried first: if it does not start, or does not understand the
configuration or what the running one has in hand, the old one goes on.

Examples:

    install -m 755 spoolfs.new /usr/bin/spoolfs && spoolfs upgrade /run/spool
    spoolfs upgrade --all     # as packages do
`
}

// Run is called by kong.
func (c *upgradeCommand) Run(env *environment) error {
	if c.All {
		return c.each(env, "upgrade", func(cl *client) error { return c.upgrade(env, cl) })
	}
	cl, err := c.open(env)
	if err != nil {
		return err
	}
	defer cl.close()
	return c.upgrade(env, cl)
}

func (c *upgradeCommand) upgrade(env *environment, cl *client) error {
	ctx, cancel := context.WithTimeout(env.ctx, c.Timeout)
	defer cancel()
	before, err := cl.status()
	if err != nil {
		return err
	}
	dir, k := cl.mount.Mountpoint, before.Keeper
	if k.PID == 0 {
		return withCode(exitUnavailable, fmt.Errorf("the daemon of %s runs without a keeper (--no-keeper): stop it and start the new version", dir))
	}
	if _, err := os.Stat(k.Binary); err != nil {
		return withCode(exitConfig, fmt.Errorf("the program of the daemon is not there: %w: install it first", err))
	}
	switch err := cl.mount.signalKeeper(k.PID, syscall.SIGUSR2); {
	case errors.Is(err, errForeignKeeper):
		return withCode(exitPermission, fmt.Errorf("the spool on %s names process %d as its keeper: %w", dir, k.PID, err))
	case errors.Is(err, syscall.EPERM):
		return withCode(exitPermission, fmt.Errorf("only root and the user who has mounted %s may upgrade it", dir))
	case err != nil:
		return withCode(exitTemporary, fmt.Errorf("tell the keeper of %s, process %d: %w", dir, k.PID, err))
	}
	after, err := cl.awaitUpgrade(ctx, k)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s: %s is now %s; keeper %d, worker %d\n", dir, before.Version, after.Version, after.Keeper.PID, after.Keeper.WorkerPID)
	return nil
}

// errForeignKeeper says that a mount tells of a process that cannot be its keeper.
var errForeignKeeper = errors.New("it is not of the user who has mounted it, and gets no signal")

// signalKeeper sends a signal to the keeper of a mount. What a mount of another user says
// is not believed: he could have root end any process.
func (m spoolMount) signalKeeper(pid int, signal syscall.Signal) error {
	if m.UID == 0 {
		return syscall.Kill(pid, signal)
	}
	process, err := unix.PidfdOpen(pid, 0) // stays this process
	if err != nil {
		return err
	}
	defer unix.Close(process)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), fmt.Sprintf("\nUid:\t%d\t%d\t", m.UID, m.UID)) {
		return errForeignKeeper
	}
	return unix.PidfdSendSignal(process, signal, nil, 0)
}

// awaitUpgrade waits until the new version serves, or is known to have failed.
func (c *client) awaitUpgrade(ctx context.Context, before keeperStatus) (status, error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		now, err := c.status()
		switch {
		case errors.Is(err, errHung), err != nil && codeOf(err) == exitInternal:
			// Between two workers, or begun with the one and ended with the other.
		case err != nil:
			return now, err
		case now.Keeper.UpgradeFailuresTotal > before.UpgradeFailuresTotal:
			return now, withCode(exitUnavailable, fmt.Errorf("%s: the old version goes on: %s", c.mount.Mountpoint, now.Keeper.UpgradeError))
		case now.Keeper.UpgradesTotal > before.UpgradesTotal:
			return now, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return now, withCode(exitTemporary, fmt.Errorf("%s: the new version does not serve yet, see the log of the daemon: %w", c.mount.Mountpoint, context.Cause(ctx)))
		}
	}
}
