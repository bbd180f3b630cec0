package janitor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Janitor empties one directory.
type Janitor struct {
	opts    Options
	log     *slog.Logger
	settler *settler
	foreign foreign
	passes  int
	looked  looked

	// spare is an empty claim that is kept for the next pass: the clock of the
	// file system is read from it, and it is there when the disk is full. spareIn
	// is the directory that it is in.
	spare   *claim
	spareIn stat

	mu    sync.Mutex // guards what follows
	stats Stats
	live  map[string]*claim // what is renewed, by name
	told  string            // the last failure in the log

	// warned says that this pass has logged a file that it cannot take.
	warned bool
}

// New makes a janitor. It touches nothing yet.
func New(opts Options) (*Janitor, error) {
	opts.ensureDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Janitor{
		opts: opts, log: opts.Logger.With("directory", opts.Name),
		settler: newSettler(opts.Age, opts.clock),
		foreign: foreign{timeout: opts.ClaimTimeout, seen: map[string]lease{}},
		live:    map[string]*claim{},
	}, nil
}

// Run empties the directory again and again until ctx ends. What goes wrong is
// logged and tried again. wake, which may be nil, ends a wait.
func (j *Janitor) Run(ctx context.Context, wake <-chan struct{}) error {
	for ctx.Err() == nil {
		more, err := j.Pass(ctx)
		if more && err == nil {
			continue
		}
		timer := time.NewTimer(j.pause())
		select {
		case <-timer.C:
		case <-wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// pause is how long to wait behind a pass. Where many files are left they are not
// looked at all the time, nor so rarely that a claim that is kept looks forsaken.
func (j *Janitor) pause() time.Duration {
	return max(j.wait(), min(9*j.looked.next(), j.opts.ClaimTimeout/2))
}

// wait is the wait for the next pass: no longer than a young file needs.
func (j *Janitor) wait() time.Duration {
	if j.Stats().Young > 0 && j.opts.Age > 0 {
		return min(j.opts.Interval, max(j.opts.Age, minInterval))
	}
	return j.opts.Interval
}

// report logs a failure when it is new.
func (j *Janitor) report(err error) {
	text := ""
	if failed(err) > 0 {
		text = err.Error()
	}
	j.mu.Lock()
	told := j.told
	j.told, j.stats.LastError = text, text
	j.mu.Unlock()
	switch {
	case text != "" && text != told:
		j.log.Warn("cannot empty the directory, trying again", "error", text, "every", j.opts.Interval)
	case text == "" && told != "":
		j.log.Info("the directory can be emptied again")
	}
}

// Pass takes what has settled, the oldest first. It reports whether there was
// more than it could list.
func (j *Janitor) Pass(ctx context.Context) (more bool, err error) {
	return j.pass(ctx, j.opts.Age)
}

// Sweep is a pass that takes whatever nobody is known to have open, whatever its
// age.
func (j *Janitor) Sweep(ctx context.Context) (more bool, err error) { return j.pass(ctx, -1) }

func (j *Janitor) pass(ctx context.Context, age time.Duration) (more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { j.renew(ctx) })
	defer renewing.Wait()
	defer cancel()
	before := j.Stats()
	j.count(func(s *Stats) { s.Running = true })
	defer func() {
		j.report(err)
		j.tell(before)
		j.count(func(s *Stats) {
			s.Running, s.More = false, more
			s.PassesTotal++
			s.FailuresTotal += failed(err)
		})
	}()
	fd, err := j.opts.Open()
	if err != nil {
		return false, err
	}
	top := &directory{fd: fd}
	defer func() { err = errors.Join(err, top.close()) }()
	j.passes++
	if err := j.begin(top, age); err != nil {
		return false, err
	}
	j.count(func(s *Stats) {
		s.Young, s.Busy, s.Linked, s.Large, s.Others = 0, 0, 0, 0, 0
		j.warned = false
	})
	j.looked = looked{}
	more, err = j.empty(ctx, top)
	now := j.Stats()
	j.looked.taken = now.FilesTotal + now.QuarantinedTotal - before.FilesTotal - before.QuarantinedTotal
	j.foreign.forget(j.passes)
	return more, err
}

// tell logs what a pass has taken.
func (j *Janitor) tell(before Stats) {
	now := j.Stats()
	if n := now.FilesTotal - before.FilesTotal; n > 0 {
		j.log.Info("took files", "files", n, "messages", now.MessagesTotal-before.MessagesTotal,
			"dead", now.DeadTotal-before.DeadTotal, "partial", now.PartialTotal-before.PartialTotal, "waiting", now.Left())
	}
}

func failed(err error) uint64 {
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return 1
	}
	return 0
}

// begin prepares a pass: there is a spare claim, and the clocks are read.
func (j *Janitor) begin(top *directory, age time.Duration) error {
	j.settler.age = age
	at, err := statFD(top.fd)
	if err != nil {
		return err
	}
	if j.spare != nil && (!at.isSame(j.spareIn) || !j.spare.isThere()) {
		// The directory is another one by now, or somebody has removed the claim.
		j.drop(j.spare)
		j.spare = nil
	}
	if j.opts.Bare && j.spare == nil {
		return j.settler.begin(top.fd)
	}
	if j.spare == nil {
		if j.spare, err = j.makeClaim(top); err != nil {
			return err
		}
		j.spareIn = at
	}
	return j.settler.begin(j.spare.fd)
}

// makeClaim makes a claim that is renewed from now on.
func (j *Janitor) makeClaim(d *directory) (*claim, error) {
	c, err := newClaim(d, j.opts.ID)
	if err == nil {
		j.keep(c)
	}
	return c, err
}

// keep has a claim renewed.
func (j *Janitor) keep(c *claim) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.live[c.name] = c
}

func (j *Janitor) isLive(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.live[name] != nil
}

// drop ends the work with a claim.
func (j *Janitor) drop(c *claim) {
	j.forget(c.name)
	// A claim that cannot be closed is closed all the same.
	_ = c.close()
}

// forget has a claim renewed no more.
func (j *Janitor) forget(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.live, name)
}

// renew renews the claims until ctx ends.
func (j *Janitor) renew(ctx context.Context) {
	ticker := time.NewTicker(max(j.opts.ClaimTimeout/10, 10*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		j.mu.Lock()
		for _, c := range j.live {
			// If it fails somebody else may take the claim: then files come twice,
			// with the same ids.
			_ = c.renew()
		}
		j.mu.Unlock()
	}
}

// Stats returns a snapshot.
func (j *Janitor) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

func (j *Janitor) count(f func(*Stats)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(&j.stats)
}

// Close gives up the claim that was kept. No pass may be under way.
func (j *Janitor) Close() error {
	if j.spare == nil {
		return nil
	}
	fd, err := j.opts.Open()
	if err == nil {
		j.spare.dir = &directory{fd: fd}
		err = errors.Join(j.spare.remove(), unix.Close(fd))
	}
	j.drop(j.spare)
	j.spare = nil
	if isGone(err) || errors.Is(err, unix.EROFS) || errors.Is(err, errMoved) {
		return nil // an empty directory is left, or nothing, and that is no error of ours
	}
	return err
}
