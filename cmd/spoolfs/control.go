package main

import (
	"fmt"
	"net/url"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"spoolfs/fs"
)

// commands are those of .status/ctl.
func (d *daemon) commands() map[string]fs.Command {
	return map[string]fs.Command{
		"pause": {
			Help:  "[route=NAME]: publishes nothing until resume or a restart; files are taken as before",
			Run:   func() error { return d.routes.each("", (*routeParts).pause) },
			Begin: d.ofRoute((*routeParts).pause),
		},
		"resume": {
			Help:  "[route=NAME]: ends a pause and, of all routes, a drain",
			Run:   d.resume,
			Begin: d.ofRoute((*routeParts).resume),
		},
		"retry": {
			Help:  "[route=NAME]: tries the broker and what is delayed now, and not later",
			Run:   d.retry,
			Begin: d.ofRoute(d.retryRoute),
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
	return d.routes.each("", (*routeParts).resume)
}

func (p *routeParts) pause() { p.publisher.Pause() }

func (p *routeParts) resume() { p.publisher.Resume() }

func (d *daemon) retry() error { return d.routes.each("", d.retryRoute) }

func (d *daemon) retryRoute(p *routeParts) {
	p.publisher.Retry()
	d.hastenRoute(p)
}

// hasten has what is delayed tried now.
func (d *daemon) hasten() { _ = d.routes.each("", d.hastenRoute) } // there are always some

// hastenRoute returns at once: there may be a million messages.
func (d *daemon) hastenRoute(p *routeParts) {
	d.background.Go(func() {
		if err := p.queue.Hasten(); err != nil {
			d.log.Error("retry", "route", p.name(), "error", err)
		}
	})
}

// ofRoute is a command with the argument route=NAME.
//
// Errors: EINVAL, ENOENT if there is no such route.
func (d *daemon) ofRoute(do func(*routeParts)) func(args []string, uid uint32) error {
	return func(args []string, _ uint32) error {
		escaped, ok := "", len(args) == 1
		if ok {
			escaped, ok = strings.CutPrefix(args[0], "route=")
		}
		name, err := url.QueryUnescape(escaped)
		if !ok || err != nil || name == "" {
			return fmt.Errorf("want route=NAME: %w", syscall.EINVAL)
		}
		return d.routes.each(name, do)
	}
}

// each does something to the route of a name, or to all if that is empty.
func (s *routeSet) each(name string, do func(*routeParts)) error {
	found := false
	for _, p := range s.list() {
		if name == "" || name == p.name() {
			found = true
			do(p)
		}
	}
	if !found {
		return fmt.Errorf("route %q: %w", name, syscall.ENOENT)
	}
	return nil
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
