package main

import (
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"sync"
	"syscall"

	"spoolfs/fs"
	"spoolfs/fs/keeper"
)

// config is the configuration that is in force. d.flags is that of the start,
// which is good for what cannot change.
func (d *daemon) config() *mountCommand { return d.live.Load() }

// reloadOnHangup reloads the configuration at each SIGHUP, until the function
// that it returns is called.
func (d *daemon) reloadOnHangup() (end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for range signals {
			d.reloading()
			d.reload()
			d.reloaded()
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(signals)
		close(signals)
		reloading.Wait()
	})
}

// reloading says that it begins. With a keeper that has said so.
func (d *daemon) reloading() {
	if err := d.manager.Reloading(); err != nil {
		d.log.Warn("service manager", "error", err)
	}
}

// reloaded says that the configuration has been read again, for better or worse:
// a service manager waits for that.
func (d *daemon) reloaded() {
	if d.worker == nil {
		d.notify("READY=1")
		return
	}
	config, err := d.config().encode()
	if err == nil {
		err = d.worker.control.Send(keeper.Message{Kind: keeper.KindReloaded, Config: config})
	}
	if err != nil {
		d.log.Warn("tell the keeper", "error", err)
	}
}

// reload reads the configuration again: the files, behind the same command line
// and environment. A good one takes over with all that can change; a bad one
// changes nothing. The broker is connected anew in any case, as the content of the
// files of passwords and certificates may be another.
func (d *daemon) reload() {
	next, err := loadMount(d.args)
	if err == nil {
		err = d.adopt(next)
	}
	if err != nil {
		text := errorLine(err)
		d.configError.Store(&text)
		d.log.Error("reload: the new configuration is wrong, and the one before stays in force", "error", text)
		return
	}
	d.configError.Store(new(string))
	d.log.Info("reloaded the configuration", "files", strings.Join(next.files.files, " "),
		"broker", next.masked(), "exchange", next.Exchange)
}

// errorLine is the text of errors for a line of the log.
func errorLine(err error) string {
	return hidingPasswords(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// adopt puts a configuration in force.
func (d *daemon) adopt(next *mountCommand) error {
	if fixed := keepFixed(d.config(), next); len(fixed) > 0 {
		d.log.Warn("reload: some settings that have changed need a restart, and stay as they are", "settings", strings.Join(fixed, " "))
	}
	if err := d.setRoutes(next); err != nil {
		return err
	}
	d.live.Store(next)
	d.queue.SetLimits(next.limits())
	d.fs.Tune(d.fsOptions(next))
	if err := d.fs.SetRoutes(d.fsRoutes()); err != nil {
		return err
	}
	d.warnOfRemoved()
	setLevel(d.level, next.LogLevel)
	// A corrected configuration applies to the backlog.
	return d.retry()
}

// keepFixed sets back in next what cannot change while the daemon runs, and
// returns the keys of what would have changed. What belongs to another format
// stays with it.
func keepFixed(now, next *mountCommand) []string {
	fixed := keepSettings(now, next, reloadable(next.Format != now.Format), now.origins, next.origins)
	for _, r := range next.routes {
		was := now.route(r.name)
		if was == nil {
			was = now.route(r.Was)
		}
		if was == nil {
			continue // a new one has what it says
		}
		for _, key := range keepSettings(was, r, reloadable(r.Format != was.Format), was.origins, r.origins) {
			fixed = append(fixed, routesKey+"."+r.name+"."+key)
		}
	}
	return fixed
}

// keepSettings sets back settings of the same kind of flags.
func keepSettings(now, next any, can map[string]bool, from, to origins) (fixed []string) {
	old := configFields(now)
	for i, f := range configFields(next) {
		if f.field.Tag.Get("config") == "-" || can[f.key] || reflect.DeepEqual(f.value.Interface(), old[i].value.Interface()) {
			continue
		}
		f.value.Set(old[i].value)
		to[f.key] = from[f.key]
		fixed = append(fixed, f.key)
	}
	return fixed
}

// reloadable are the keys of what can change while the daemon runs.
func reloadable(otherFormat bool) map[string]bool {
	can := map[string]bool{}
	for _, f := range configFields(&routeConfig{}) {
		can[f.key] = true
	}
	for _, f := range configFields(&mountCommand{}) {
		if tag := f.field.Tag.Get("reload"); tag != "" {
			can[f.key] = tag == "yes"
		}
	}
	if otherFormat {
		for _, f := range configFields(&formatFlags{}) {
			delete(can, f.key)
		}
	}
	return can
}

// fsOptions are the settings of the mount that can change.
func (d *daemon) fsOptions(c *mountCommand) fs.Options {
	return fs.Options{
		FileLimit:    int64(c.FileLimit),
		MessageLimit: int64(c.MessageLimit),
		BufferLimit:  int64(c.BufferLimit),
		OpenLimit:    c.OpenLimit,
		UserShare:    c.UserShare,
		Linger:       c.Linger,
		HeldFor:      c.HeldFor,
		StoreTimeout: c.StoreTimeout,
		StatusGroup:  c.statusGroup,
	}
}

// setLevel sets the least level of the log. kong has checked the word.
func setLevel(level *slog.LevelVar, word string) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(word)); err != nil {
		l = slog.LevelInfo
	}
	level.Set(l)
}

// configFault is what was wrong at the last reload; empty if nothing was.
func (d *daemon) configFault() string {
	if text := d.configError.Load(); text != nil {
		return *text
	}
	return ""
}
