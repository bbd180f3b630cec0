package main

import (
	"os/user"
	"strconv"

	"spoolfs/fs"
)

// commands are those of .status/ctl.
func (d *daemon) commands() map[string]fs.Command {
	return map[string]fs.Command{
		"pause": {
			Help: "publishes nothing until resume or a restart; files are taken as before",
			Run:  func() error { d.publisher.Pause(); return nil },
		},
		"resume": {
			Help: "ends a pause and a drain",
			Run:  d.resume,
		},
		"retry": {
			Help: "tries the broker and what is delayed now, and not later",
			Run:  d.retry,
		},
		"drain": {
			Help: "takes no new files (EROFS) until resume or a restart, and publishes what there is",
			Run:  func() error { d.fs.Refuse(true); return nil },
		},
		"unmount": {
			Help: "ends the daemon as SIGTERM does, and takes the mount away",
			Run:  d.unmount,
		},
		"count":   d.jobCommand(fs.Count, "STATE [route=NAME] [reason=TEXT] [older-than=DURATION] [job=ID]: counts messages; see the file jobs"),
		"purge":   d.jobCommand(fs.Purge, "the same: removes them"),
		"redrive": d.jobCommand(fs.Redrive, "the same: makes them ready"),
	}
}

func (d *daemon) resume() error {
	d.fs.Refuse(false)
	d.publisher.Resume()
	return nil
}

func (d *daemon) retry() error {
	d.publisher.Retry()
	d.hasten()
	return nil
}

// hasten has what is delayed tried now. It returns at once: there may be a
// million of them.
func (d *daemon) hasten() {
	d.background.Go(func() {
		if err := d.route.Hasten(); err != nil {
			d.log.Error("retry", "error", err)
		}
	})
}

// groupID finds a group by its name or number. An empty name is no group, 0.
func groupID(name string) (uint32, error) {
	if name == "" {
		return 0, nil
	}
	if g, err := user.LookupGroup(name); err == nil {
		name = g.Gid
	}
	gid, err := strconv.ParseUint(name, 10, 32)
	switch {
	case err != nil:
		return 0, badSetting("status_group", "there is no group %q", name)
	case gid == 0:
		// In containers every user may be in it.
		return 0, badSetting("status_group", "the group of root is not one of operators, and root needs none")
	}
	return uint32(gid), nil
}
