package janitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"spoolfs/queue"
)

// found is what a directory holds.
type found struct {
	files  *listing
	claims []string
	dirs   []string
}

// maxFound bounds the claims and the subdirectories that a pass looks at.
const maxFound = 1 << 16

// empty takes the files of a directory: first what was claimed before, then the
// oldest.
func (j *Janitor) empty(ctx context.Context, d *directory) (more bool, err error) {
	all, err := j.scan(ctx, d)
	if err != nil {
		return false, err
	}
	for _, name := range all.claims {
		if err := j.spared(ctx, d.label+name, j.takeOver(ctx, d, name)); err != nil {
			return false, err
		}
	}
	if len(all.files.items) > 0 {
		if err := j.emptyInto(ctx, d, all.files); err != nil {
			return false, err
		}
	}
	more = all.files.more
	for _, name := range all.dirs {
		deeper, err := j.emptySub(ctx, d, name)
		if err != nil {
			return false, err
		}
		more = more || deeper
	}
	return more, nil
}

// emptySub empties a subdirectory. One that cannot be emptied holds up no other.
func (j *Janitor) emptySub(ctx context.Context, d *directory, name string) (more bool, err error) {
	sub, err := d.enter(name)
	if err == nil && sub != nil {
		more, err = j.empty(ctx, sub)
		err = errors.Join(err, sub.close())
	}
	return more, j.spared(ctx, d.label+name, err)
}

// spared logs the failure of one directory of several, which holds up no other,
// and returns one that does.
func (j *Janitor) spared(ctx context.Context, label string, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, queue.ErrClosed) {
		return err
	}
	j.warn("cannot empty a directory", label, err)
	return nil
}

// emptyInto moves files into a claim and takes them from there.
func (j *Janitor) emptyInto(ctx context.Context, d *directory, l *listing) (err error) {
	c := j.spare
	if c == nil || d.label != "" {
		if c, err = j.makeClaim(d); err != nil {
			return err
		}
	}
	c.dir = d
	err = j.takeAll(ctx, c, l, false)
	if c == j.spare && err == nil && isEmpty(c.fd) {
		return nil
	}
	if c == j.spare {
		j.spare = nil
	}
	return errors.Join(err, j.leave(ctx, c))
}

// leave ends the work with a claim. What is left in it at a stop is free for
// anybody; otherwise the next pass takes it.
func (j *Janitor) leave(ctx context.Context, c *claim) error {
	err := c.remove()
	if ctx.Err() != nil && !isEmpty(c.fd) {
		j.forget(c.name)
		_, e := c.rename(freeID)
		err = errors.Join(err, e)
	}
	j.drop(c)
	return err
}

func isEmpty(fd int) bool {
	return each(fd, func(string, byte) error { return unix.ENOTEMPTY }) == nil
}

// scan lists a directory. Each name is looked at once.
func (j *Janitor) scan(ctx context.Context, d *directory) (*found, error) {
	all := &found{files: newListing(maxListed)}
	began := j.opts.clock.mono()
	defer func() { j.looked.took += j.opts.clock.mono() - began }()
	err := each(d.fd, func(name string, kind byte) error {
		if !strings.HasPrefix(name, ownPrefix) {
			j.looked.names++
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case kind == unix.DT_REG:
			return j.scanFile(d, all, name)
		case kind == unix.DT_DIR:
			j.scanDir(d, all, name)
			return nil
		case kind != unix.DT_UNKNOWN:
			j.setAside(errNoFile, d.label+name, nil)
			return nil
		}
		return j.scanUnknown(d, all, name)
	})
	all.files.sort()
	slices.Sort(all.dirs)
	return all, err
}

func (j *Janitor) scanUnknown(d *directory, all *found, name string) error {
	st, err := statAt(d.fd, name)
	switch {
	case isGone(err):
		return nil
	case err != nil:
		return j.unread(d.label+name, fmt.Errorf("look at %q: %w", d.label+name, err))
	case st.isDir():
		j.scanDir(d, all, name)
		return nil
	}
	return j.scanFile(d, all, name)
}

func (j *Janitor) scanDir(d *directory, all *found, name string) {
	switch {
	case len(all.claims)+len(all.dirs) >= maxFound:
	case claimOwner(name) != "":
		all.claims = append(all.claims, name)
	case strings.HasPrefix(name, ownPrefix):
	case j.opts.Bare && d.depth < maxDepth:
		all.dirs = append(all.dirs, name)
	}
}

// scanFile notes a file that is to be taken.
func (j *Janitor) scanFile(d *directory, all *found, name string) error {
	st, err := statAt(d.fd, name)
	switch {
	case isGone(err):
		return nil
	case err != nil:
		return j.unread(d.label+name, fmt.Errorf("look at %q: %w", d.label+name, err))
	case !st.isFile():
		j.setAside(errNoFile, d.label+name, nil)
	case st.links > 1:
		j.setAside(errLinked, d.label+name, nil)
	case st.size > j.opts.FileLimit && j.opts.Bare:
		j.setAside(errLarge, d.label+name, nil)
	case isHeld(name) && !j.isAbandoned(st):
		// It waits for its rename, which is not ours to wait for.
	case !j.settler.settled(d.label+name, st), st.size == 0 && !j.isOld(st):
		j.count(func(s *Stats) { s.Young++ })
	default:
		all.files.add(name, st)
	}
	return nil
}

func isGone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE) }

// isAbandoned reports whether a file with a temporary name has waited too long.
func (j *Janitor) isAbandoned(st stat) bool { return j.settler.isOlder(st, j.opts.HeldFor) }

// isYoung reports whether a file is younger than one can be that was claimed: it
// was put there by mistake, in the place of another one.
func (j *Janitor) isYoung(st stat) bool {
	age := j.settler.age
	return age > 0 && j.settler.now.UnixNano()-st.mtime < int64(age)
}

// isOld reports whether a file is old enough to be taken where nothing tells that
// nobody writes to it, or to be removed if it is empty: somebody may be about to
// open it.
func (j *Janitor) isOld(st stat) bool {
	need := j.opts.Age
	if j.opts.Bare {
		need = unknownAge
	}
	return need <= 0 || j.settler.isOlder(st, need)
}

// takeOver takes the files of a claim that nobody holds any more.
func (j *Janitor) takeOver(ctx context.Context, d *directory, name string) error {
	if j.isLive(name) {
		return nil
	}
	c, err := openClaim(d, name)
	if err != nil || c == nil {
		return err
	}
	if owner := claimOwner(name); owner != j.opts.ID && owner != freeID {
		st, err := statFD(c.fd)
		if err != nil || !j.foreign.isDead(d.label+name, st, j.opts.clock.mono(), j.passes) {
			return errors.Join(err, c.close())
		}
		j.log.Warn("taking over the files of a janitor that is gone", "claim", name, "after", j.opts.ClaimTimeout)
	}
	ok, err := c.rename(j.opts.ID)
	if err != nil || !ok {
		return errors.Join(err, c.close())
	}
	j.keep(c)
	j.count(func(s *Stats) { s.TakeoversTotal++ })
	l, err := j.scanClaim(c)
	if err == nil && len(l.items) > 0 {
		err = j.takeAll(ctx, c, l, true)
	}
	return errors.Join(err, j.leave(ctx, c))
}

// scanClaim lists the files of a claim. What should not be in it is put back: a
// user has put it in the place of a file at the moment when that was claimed.
func (j *Janitor) scanClaim(c *claim) (*listing, error) {
	l := newListing(maxListed)
	err := each(c.fd, func(name string, _ byte) error {
		st, err := statAt(c.fd, name)
		switch {
		case isGone(err):
			return nil
		case err != nil:
			return j.unread(c.dir.label+name, fmt.Errorf("look at %q in a claim: %w", c.dir.label+name, err))
		case !st.isFile() || st.links > 1:
			j.setAside(errNoFile, c.dir.label+name, c.putBack(name))
		case j.isYoung(st):
			j.setAside(errYoung, c.dir.label+name, c.putBack(name))
		default:
			l.add(name, st)
		}
		return nil
	})
	l.sort()
	return l, err
}

// setAside counts what stays where it is.
func (j *Janitor) setAside(why error, label string, err error) {
	j.log.Debug("left where it is", "file", label, "reason", why, "error", err)
	j.count(func(s *Stats) {
		switch {
		case errors.Is(why, errBusy), errors.Is(why, errChanged):
			s.Busy++
		case errors.Is(why, errYoung):
			s.Young++
		case errors.Is(why, errLinked):
			s.Linked++
		case errors.Is(why, errLarge):
			s.Large++
		default:
			s.Others++
		}
	})
}
