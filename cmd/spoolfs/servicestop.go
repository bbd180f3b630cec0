package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// stopService is what systemd runs as ExecStop=. At a restart it does nothing: the
// signal that follows has the keeper leave the mount with systemd, for the next
// start. At a stop there is no next start, and systemd would drop what it keeps,
// so that the mount is taken away in good order instead.
func (c *unmountCommand) stopService(env *environment) error {
	keeper, err := strconv.Atoi(os.Getenv("MAINPID"))
	if err != nil || isRestarted(c.Service) {
		return nil // it has ended, or will be back
	}
	mounts, err := readMounts()
	if err != nil {
		return withCode(exitIO, err)
	}
	for _, m := range trusted(mounts, os.Geteuid()) {
		cl := &client{mount: m, access: &accessor{within: c.AnswerWithin}, ctx: env.ctx}
		// Without a keeper it is the process itself that serves.
		if s, err := cl.status(); err == nil && (s.Keeper.PID == keeper || s.Keeper.WorkerPID == keeper) {
			err := c.unmount(env, cl)
			cl.close()
			return err
		}
		cl.close()
	}
	return nil // it hangs, or has no mount yet: the signal that follows ends it
}

// isRestarted reports whether systemd stops a unit for a restart.
func isRestarted(unit string) bool {
	jobs, err := exec.Command("systemctl", "list-jobs", "--no-legend", "--full", "--plain", "--no-pager").Output()
	if err != nil {
		return false
	}
	return restartAmong(string(jobs), unit)
}

// restartAmong looks for a restart of a unit among jobs:
//
//	1234 spoolfs.service restart running
func restartAmong(jobs, unit string) bool {
	for line := range strings.Lines(jobs) {
		fields := strings.Fields(line)
		if len(fields) >= 3 && fields[1] == unit && strings.Contains(fields[2], "restart") {
			return true
		}
	}
	return false
}
