package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"spoolfs/fs/janitor"
)

// janitorFlags are those of janitors, in a daemon and on their own.
type janitorFlags struct {
	JanitorAge   time.Duration `default:"1m" help:"How long a file in a plain directory must not have changed before it is taken (${default})."`
	ClaimTimeout time.Duration `default:"5m" help:"How long a janitor on another host may give no sign of life before its files are taken over (${default})."`
}

func (f *janitorFlags) check() error {
	if f.JanitorAge <= 0 {
		return badSetting("janitor_age", "want more than 0, such as 1m")
	}
	if f.ClaimTimeout < time.Second {
		return badSetting("claim_timeout", "want a second or more: claims are renewed ten times in it")
	}
	return nil
}

// janitors empty plain directories into the queue of a daemon.
type janitors struct {
	all     []*janitor.Janitor
	stop    context.CancelFunc
	running sync.WaitGroup
}

// newJanitors makes a janitor for each directory.
func (d *daemon) newJanitors(dirs []string, f janitorFlags) (*janitors, error) {
	js := &janitors{stop: func() {}}
	dirs, err := distinct(dirs)
	if err != nil || len(dirs) == 0 {
		return js, err
	}
	id, err := storeID(d.flags.Store)
	if err != nil {
		return nil, withCode(exitIO, err)
	}
	for _, dir := range dirs {
		if err := mayEmpty(dir, d.flags.Store); err != nil {
			return nil, withCode(exitUsage, err)
		}
		j, err := janitor.New(janitor.Options{
			Open: janitor.OpenPath(dir), Name: dir, ID: id,
			Route: d.route, Format: d.main.format, Host: hostName(), UserName: d.main.format.userName, Provenance: d.flags.Provenance,
			FileLimit: int64(d.flags.FileLimit), MessageLimit: int64(d.flags.MessageLimit), HeldFor: d.flags.HeldFor,
			Age: f.JanitorAge, ClaimTimeout: f.ClaimTimeout, Logger: d.log,
		})
		if err != nil {
			return nil, withCode(exitInternal, err)
		}
		js.all = append(js.all, j)
	}
	return js, nil
}

// checkJanitors refuses plain directories within the mount.
func (c *mountCommand) checkJanitors() error {
	for _, dir := range c.Janitor {
		if abs, err := filepath.Abs(dir); err == nil && within(abs, c.Mountpoint) {
			return badSetting("janitor", "%s lies within the mountpoint %s, which publishes what is written there: name plain directories", dir, c.Mountpoint)
		}
	}
	return nil
}

// mayEmpty refuses a directory that holds the store, and one in a spool that is
// mounted, where files are open and are published without our help.
func mayEmpty(dir, store string) error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	real := dir
	for range 2 { // as it is called first: a mount may not answer
		for _, m := range mounts {
			if within(real, m.Mountpoint) {
				return fmt.Errorf("%s lies in the spool that is mounted on %s, which publishes what is written there: name plain directories", dir, m.Mountpoint)
			}
		}
		if path, err := filepath.EvalSymlinks(dir); err == nil {
			real = path
		}
	}
	if within(store, real) {
		return fmt.Errorf("the store %s lies within %s, which is to be emptied: give it a directory elsewhere", store, dir)
	}
	return nil
}

// distinct makes paths absolute and drops those that lead to one directory. One
// that is not there yet may come.
func distinct(dirs []string) ([]string, error) {
	var paths []string
	var infos []os.FileInfo
next:
	for _, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, withCode(exitUsage, err)
		}
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			return nil, withCode(exitUsage, fmt.Errorf("%s is no directory", dir))
		}
		for i, other := range infos {
			if paths[i] == path || err == nil && other != nil && os.SameFile(info, other) {
				continue next
			}
		}
		paths, infos = append(paths, path), append(infos, info)
	}
	return paths, nil
}

// start sets them to work.
func (js *janitors) start() {
	ctx, cancel := context.WithCancel(context.Background())
	js.stop = cancel
	for _, j := range js.all {
		js.running.Go(func() { _ = j.Run(ctx, nil) }) // it returns nil
	}
}

// close ends their work.
func (js *janitors) close() error {
	js.stop()
	js.running.Wait()
	var err error
	for _, j := range js.all {
		err = errors.Join(err, j.Close())
	}
	return err
}

// stats is the sum of all.
func (js *janitors) stats() janitor.Stats {
	var sum janitor.Stats
	for _, j := range js.all {
		sum.Add(j.Stats())
	}
	return sum
}

// areDone reports whether each directory was looked at since a number of passes,
// without an error, and nothing in it is left that will be taken.
func (js *janitors) areDone() bool {
	for _, j := range js.all {
		if s := j.Stats(); s.PassesTotal == 0 || s.Left() > 0 || s.LastError != "" || s.Running || s.More {
			return false
		}
	}
	return true
}
