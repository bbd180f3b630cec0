package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// exitInterrupted is not one of sysexits.h: it becomes one of mount(8).
const exitInterrupted = 130

// mount starts "spoolfs mount" in the background and waits until it serves.
func (h *mountHelper) mount(env *environment) error {
	before, err := readMounts()
	if err != nil {
		return withCode(exitIO, err)
	}
	log, err := openBackgroundLog(h.log)
	if err != nil {
		return withCode(exitCannot, fmt.Errorf("log: %w", err))
	}
	defer log.close()
	cmd, err := h.command(log)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	log.started()
	if err := h.await(env, ended, before); err != nil {
		if codeOf(err) == exitInterrupted {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it ends without a mount
			<-ended
		}
		return log.explain(err)
	}
	if err := log.goOn(); err != nil {
		fmt.Fprintf(env.stderr, "mount.fuse.spoolfs: %s is mounted, but its log goes nowhere: %s: use the option log=FILE; .status/events has its last lines\n", h.dir, err)
	}
	return cmd.Process.Release()
}

// command is the daemon, which has nothing of who mounts, and will have a session of
// its own.
func (h *mountHelper) command(log *backgroundLog) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// The program under its own name, which is also where its next version will be.
	cmd := exec.Command(self, h.args...)
	cmd.Args[0] = "spoolfs"
	cmd.Dir = "/"
	cmd.Env = append(log.environ(), backgroundEnv+"=1")
	cmd.Stderr = log.to
	return cmd, nil
}

// backgroundEnv tells the daemon to leave our process group when the mount is there.
// autofs lets nobody but that group come near the mountpoint before we return.
const backgroundEnv = "SPOOLFS_IN_BACKGROUND"

func inBackground() bool { return os.Getenv(backgroundEnv) != "" }

// await waits until the mount is there, which is when a worker serves it, or the
// daemon has ended.
func (h *mountHelper) await(env *environment, ended <-chan error, before []spoolMount) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		mounts, err := readMounts()
		if err != nil {
			return withCode(exitIO, err)
		}
		m, there := mountAt(mounts, h.dir)
		if there && !slices.ContainsFunc(before, func(o spoolMount) bool { return o.ID == m.ID }) {
			return nil
		}
		select {
		case <-ticker.C:
		case err := <-ended:
			return daemonEnded(err)
		case <-env.ctx.Done():
			return withCode(exitInterrupted, errors.New("interrupted"))
		}
	}
}

// daemonEnded is the end of a daemon that did not come to serve.
func daemonEnded(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return withCode(exit.ExitCode(), errors.New("not mounted"))
	}
	return withCode(exitCannot, fmt.Errorf("not mounted: the daemon has ended: %v", err))
}

// saidBy is what a daemon has said, for an error: without the prefixes for the
// system's log, and without the name of the program.
func saidBy(text []byte) string {
	var all []string
	for line := range bytes.Lines(text) {
		said := strings.TrimSpace(string(line))
		if len(said) > 3 && said[0] == '<' && said[2] == '>' {
			said = said[3:]
		}
		all = append(all, strings.TrimPrefix(said, "spoolfs: "))
	}
	return strings.Join(all, "\n")
}
