package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"spoolfs/fs"
	"spoolfs/fs/janitor"
)

// sweep empties the directory below the mount, where nobody else finds what is
// written while nothing is mounted, or by processes that were in it before; and
// the plain directories of the configuration.
type sweep struct {
	daemon  *daemon
	bare    *janitor.Bare
	janitor *janitor.Janitor // nil if the directory cannot be reached
	plain   *janitors

	stop    context.CancelFunc
	running sync.WaitGroup
	once    sync.Once
}

// firstSweep is how long a start waits for the files below the mountpoint to be
// taken; the rest goes on under the mount.
const firstSweep = 2 * time.Second

// What lies below the mount is looked at this often, and at once when something
// is closed there. A file must not have changed for the age, as long as the mount
// gives a name to its process after the close.
const (
	sweepInterval = 5 * time.Second
	sweepAge      = time.Second
)

// newSweep opens the directory below the mountpoint. If it cannot, it says so, and
// that is no error.
func (d *daemon) newSweep() (*sweep, error) {
	plain, err := d.newJanitors(d.flags.Janitor, d.flags.janitorFlags)
	if err != nil {
		return nil, err
	}
	s := &sweep{daemon: d, plain: plain, stop: func() {}}
	if err := s.open(); err != nil {
		d.log.Warn("what is written below the mount, while nothing is mounted, is not published", "error", err)
	}
	d.sweeping.Store(s)
	return s, nil
}

func (s *sweep) open() error {
	d := s.daemon
	mountpoint, err := fs.ResolveMountpoint(d.flags.Mountpoint)
	if err != nil {
		return err
	}
	id, err := storeID(d.flags.Store)
	if err != nil {
		return err
	}
	if s.bare, err = janitor.OpenBare(mountpoint); err != nil {
		return err
	}
	s.janitor, err = janitor.New(janitor.Options{
		Open: s.bare.Open, Name: "below " + mountpoint, Bare: true, ID: id,
		Route: d.route, Format: d.main.format, Host: hostName(), UserName: d.main.format.userName, Provenance: d.flags.Provenance,
		FileLimit: int64(d.flags.FileLimit), MessageLimit: int64(d.flags.MessageLimit), HeldFor: d.flags.HeldFor,
		Age: sweepAge, Interval: sweepInterval, Logger: d.log,
	})
	return err
}

// first takes what is there before the mount hides it, within a time.
func (s *sweep) first() {
	if s.janitor == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), firstSweep)
	defer cancel()
	// It logs its failures, and there is more time later.
	_, _ = s.janitor.Sweep(ctx)
}

// goOn goes on under the mount.
func (s *sweep) goOn() {
	s.plain.start()
	if s.janitor == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	wake, err := s.bare.Watch(ctx)
	if err != nil {
		s.daemon.log.Warn("files below the mount are noticed late", "error", err, "every", sweepInterval)
	}
	// It ends with ctx only, and without an error.
	s.running.Go(func() {
		_ = s.janitor.Run(ctx, wake)
		for wake != nil {
			if _, ok := <-wake; !ok {
				break
			}
		}
	})
}

// close ends the sweep.
func (s *sweep) close() {
	s.once.Do(func() {
		s.stop()
		s.running.Wait()
		err := s.plain.close()
		if s.janitor != nil {
			err = errors.Join(err, s.janitor.Close())
		}
		if s.bare != nil {
			err = errors.Join(err, s.bare.Close())
		}
		if err != nil {
			s.daemon.log.Warn("stop emptying directories", "error", err)
		}
	})
}

// janitorStatus counts what plain directories have brought: that below the mount,
// and those of the configuration.
type janitorStatus struct {
	FilesTotal       uint64 `json:"files_total"`
	MessagesTotal    uint64 `json:"messages_total"`
	DeadTotal        uint64 `json:"dead_total"`
	PartialTotal     uint64 `json:"partial_total"`
	QuarantinedTotal uint64 `json:"quarantined_total"` // files without a message
	TakeoversTotal   uint64 `json:"takeovers_total"`   // claims of a run that has ended, or of another janitor
	ChangedTotal     uint64 `json:"changed_total"`     // files that changed while they were taken
	FailuresTotal    uint64 `json:"failures_total"`
	WaitingFiles     int    `json:"waiting_files"` // young, or open for writing
	LeftFiles        int    `json:"left_files"`    // that are never taken: several names, too large, no file
	LastError        string `json:"last_error"`
}

func (d *daemon) janitorStatus() janitorStatus {
	s := d.sweeping.Load()
	if s == nil {
		return janitorStatus{}
	}
	sum := s.plain.stats()
	if s.janitor != nil {
		sum.Add(s.janitor.Stats())
	}
	return janitorStatusOf(sum)
}

func janitorStatusOf(n janitor.Stats) janitorStatus {
	return janitorStatus{
		FilesTotal: n.FilesTotal, MessagesTotal: n.MessagesTotal, DeadTotal: n.DeadTotal, PartialTotal: n.PartialTotal,
		QuarantinedTotal: n.QuarantinedTotal, TakeoversTotal: n.TakeoversTotal, ChangedTotal: n.ChangedTotal,
		FailuresTotal: n.FailuresTotal, WaitingFiles: n.Left(), LeftFiles: n.Linked + n.Large + n.Others, LastError: n.LastError,
	}
}
