package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"
	"github.com/alecthomas/units"

	"spoolfs/queue"
)

// storeFlags are those of a command that has a store to itself and mounts nothing.
type storeFlags struct {
	configured `embed:""`

	Store        string `placeholder:"DIR" help:"Directory of the messages that are not confirmed yet. The default is systemd's state directory, if there is one."`
	NetworkStore bool   `help:"Use a store that is on a network file system."`
	routeFlags   `embed:""`

	MaxBytes    units.Base2Bytes `placeholder:"SIZE" help:"Size of the messages that the store may hold, such as 10GiB (half of its file system)."`
	MaxMessages uint64           `placeholder:"N" help:"Messages that the store may hold (no limit)."`
	UserShare   float64          `default:"0.5" placeholder:"PART" help:"Part of these that one user may fill; root may fill all (${default})."`
	StopSend    time.Duration    `default:"10s" help:"How long a stop goes on sending what the broker takes (${default})."`

	LogLevel  string `default:"info" enum:"debug,info,warn,error" help:"Least level of messages on stderr: ${enum} (${default})."`
	LogFormat string `default:"text" enum:"text,json" help:"Form of the log: ${enum} (${default})."`
}

// AfterApply is called by kong when all values are set.
func (f *storeFlags) AfterApply(ctx *kong.Context) error {
	f.note(ctx)
	if err := f.makeRoutes(&f.routeFlags, configKeys(ctx.Model.Node)); err != nil {
		return err
	}
	f.fillInStore(&f.Store)
	return nil
}

// check refuses what cannot work before anything is touched.
func (f *storeFlags) check() error {
	if err := f.routeFlags.check(); err != nil {
		return f.origins.placed(err)
	}
	if !(f.UserShare > 0 && f.UserShare <= 1) { // nor NaN
		return f.origins.placed(badSetting("user_share", "want more than 0 and at most 1, not %g", f.UserShare))
	}
	if err := f.checkRoutes(&f.routeFlags); err != nil {
		return err
	}
	return f.checkStore()
}

// checkStore sees that a store is named.
func (f *storeFlags) checkStore() error {
	if f.Store == "" {
		return withCode(exitUsage, errors.New("no store is given: use --store=DIR, or store in the configuration"))
	}
	return nil
}

// open opens the store and makes the parts of a daemon that is not mounted. What a
// daemon has left is taken up as it would.
func (f *storeFlags) open(env *environment) (*daemon, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	store, err := filepath.Abs(f.Store)
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	return newDaemon(&mountCommand{
		configured: f.configured,
		Store:      store, NetworkStore: f.NetworkStore, routeFlags: f.routeFlags,
		MaxBytes: f.MaxBytes, MaxMessages: f.MaxMessages, UserShare: f.UserShare, StopSend: f.StopSend,
		LogLevel: f.LogLevel, observeFlags: observeFlags{LogFormat: f.LogFormat, StalledAfter: time.Minute},
	}, env)
}

// mustExist refuses a store that is not there, instead of making one.
func (f *storeFlags) mustExist() error {
	if err := f.checkStore(); err != nil {
		return err
	}
	return storeMustExist(f.Store)
}

func storeMustExist(store string) error {
	_, err := os.Stat(filepath.Join(store, "FORMAT"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return withCode(exitUsage, fmt.Errorf("--store=%s: there is no store", store))
	case err != nil:
		return withCode(exitIO, err)
	}
	return nil
}

// publishing is a publisher at work.
type publishing struct {
	daemon *daemon
	cancel context.CancelFunc
	ended  chan error
}

func (d *daemon) startPublishing() *publishing {
	ctx, cancel := context.WithCancel(context.Background())
	p := &publishing{d, cancel, make(chan error, 1)}
	d.hasten()
	go func() { p.ended <- d.routes.run(ctx) }()
	return p
}

// stop ends it and waits for what is on its way.
func (p *publishing) stop() error {
	p.cancel()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(stopLimit):
		p.daemon.routes.abort()
		return errors.Join(<-p.ended, withCode(exitTemporary, errors.New("the broker holds up the stop: ended without it; what was not confirmed is in the store")))
	}
}

// unsent is how many messages are to be sent.
func unsent(s queue.Stats) uint64 { return s.Ready + s.Leased + s.Delayed }

// until polls a condition until it holds, ctx ends, or the publisher does. It
// reports whether it holds.
func (p *publishing) until(ctx context.Context, cond func() bool) (bool, error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !cond() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false, nil
		case err := <-p.ended:
			p.ended <- nil
			return false, withCode(exitIO, fmt.Errorf("cannot go on: %w", err))
		}
	}
	return true, nil
}
