package queue

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A damaged database is set aside, in steps of which each can be the last one
// before a crash:
//
//  1. db is renamed to damaged-<time>. Nothing in it is ever changed or deleted,
//     but for the REPORT that is written into it.
//  2. All rows that can be read are copied to a new database, salvage/db.
//  3. The counters and indexes of the new one are made to fit its rows.
//  4. salvage/db is renamed to db. Now the REPORT is finished.
//
// A store without db whose newest damaged directory has no finished REPORT is
// between 1 and 4: the copy is thrown away and begun again.
const (
	damagedPrefix = "damaged-"
	damagedTime   = "20060102T150405Z"
	salvageDir    = "salvage"
	reportFile    = "REPORT"
	reportDone    = "State: done."
)

// setAside moves the database away and puts what can be read of it in its place.
func (q *Queue) setAside(cause error) error {
	dir, err := q.freeName(damagedPrefix + time.Now().UTC().Format(damagedTime))
	if err != nil {
		return err
	}
	q.opts.Logger.Error("the store is damaged and set aside", "error", cause, "dir", dir)
	if err := q.opts.FS.Rename(q.database(), q.inStore(dir)); err != nil {
		return err
	}
	if err := syncDir(q.opts.FS, q.dir); err != nil {
		return err
	}
	return q.salvageFrom(dir, cause)
}

func (q *Queue) inStore(name string) string { return q.opts.FS.PathJoin(q.dir, name) }

// freeName finds a name that nothing in the store has.
func (q *Queue) freeName(name string) (string, error) {
	for try, n := name, 2; ; try, n = fmt.Sprintf("%s-%d", name, n), n+1 {
		if _, err := q.opts.FS.Stat(q.inStore(try)); errors.Is(err, fs.ErrNotExist) {
			return try, nil
		} else if err != nil {
			return "", err
		}
	}
}

// resumeSetAside goes on where a crash has interrupted setAside.
func (q *Queue) resumeSetAside() error {
	if _, err := q.opts.FS.Stat(q.database()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := q.newestDamaged()
	if err != nil || dir == "" {
		return err
	}
	report, err := readFile(q.opts.FS, q.opts.FS.PathJoin(q.inStore(dir), reportFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(report, reportDone) {
		return err
	}
	q.opts.Logger.Warn("the salvage of a damaged store was interrupted and begins again", "dir", dir)
	return q.salvageFrom(dir, errors.New("see the log of the time at which it was set aside"))
}

func (q *Queue) newestDamaged() (string, error) {
	names, err := q.opts.FS.List(q.dir)
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		info, err := q.opts.FS.Stat(q.inStore(name))
		return !strings.HasPrefix(name, damagedPrefix) || err != nil || !info.IsDir()
	})
	if len(names) == 0 {
		return "", nil
	}
	return slices.Max(names), nil
}

// salvageFrom does steps 2 to 4.
func (q *Queue) salvageFrom(dir string, cause error) error {
	started := time.Now()
	if err := q.writeReport(dir, salvaging(dir, cause)); err != nil {
		return err
	}
	s := &salvage{}
	damage, err := q.salvage(dir, s, cause)
	if err != nil {
		if isDamage(err) { // of what has just been written: not to be set aside, too
			err = fmt.Errorf("%w: %v", ErrFault, err)
		}
		return fmt.Errorf("salvage %s: %w", dir, err)
	}
	if err := q.opts.FS.Rename(q.inStore(salvageDir+"/"+databaseDir), q.database()); err != nil {
		return err
	}
	if err := syncDir(q.opts.FS, q.dir); err != nil {
		return err
	}
	q.opts.Logger.Warn("the store has been salvaged", "dir", dir, "rows", s.report.rows,
		"damaged", damage.Damaged, "missing", damage.Missing, "took", time.Since(started))
	return errors.Join(q.writeReport(dir, salvaged(dir, cause, s.report, damage)),
		q.opts.FS.RemoveAll(q.inStore(salvageDir))) // empty but for the scratch
}

// salvage copies what can be read in dir to salvage/db.
func (q *Queue) salvage(dir string, s *salvage, cause error) (damage DamageReport, err error) {
	if err := q.opts.FS.RemoveAll(q.inStore(salvageDir)); err != nil {
		return damage, err
	}
	if s.from, err = list(&tolerantFS{FS: q.opts.FS}, q.inStore(dir)); err != nil {
		return damage, err
	}
	fsys := q.opts.FS
	for _, sub := range []string{databaseDir, "log"} {
		if err := fsys.MkdirAll(fsys.PathJoin(q.inStore(salvageDir), sub), 0o700); err != nil {
			return damage, err
		}
	}
	if s.to, err = openEngine(fsys.PathJoin(q.inStore(salvageDir), databaseDir), &q.opts, nil); err != nil {
		return damage, err
	}
	defer func() { err = errors.Join(err, s.to.close()) }()
	scratch := &engine{failed: make(chan struct{})}
	scratchDir := fsys.PathJoin(q.inStore(salvageDir), "log")
	scratchFS, err := newEngineFS(fsys, scratchDir, scratch)
	if err != nil {
		return damage, err
	}
	opts := scratch.pebbleOptions(scratchFS, &q.opts)
	opts.DisableWAL = true
	if s.scratch, err = openPebble(scratchDir, opts); err != nil {
		return damage, err
	}
	defer func() { err = errors.Join(err, guarded(s.scratch.Close)) }()
	if err := s.run(); err != nil {
		return damage, err
	}
	if s.report.damaged == 0 {
		s.report.note(1, "%v", cause) // of a file that was not needed
	}
	return q.finishSalvage(dir, s)
}

// finishSalvage does step 3.
func (q *Queue) finishSalvage(dir string, s *salvage) (DamageReport, error) {
	found := DamageReport{Damaged: s.report.damaged, Dir: dir, At: time.Now()}
	if !s.trusted {
		if err := renumber(s.to); err != nil {
			return found, err
		}
	}
	if _, err := repair(s.to, found); err != nil {
		return found, err
	}
	if err := guarded(s.to.db.Flush); err != nil {
		return found, err
	}
	return readDamage(s.to.db)
}

func (q *Queue) writeReport(dir, text string) error {
	fsys := q.opts.FS
	name := fsys.PathJoin(q.inStore(dir), reportFile)
	f, err := fsys.Create(name+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(fsys.Rename(name+".new", name), syncDir(fsys, q.inStore(dir)))
}

func salvaging(dir string, cause error) string {
	return fmt.Sprintf(`State: under way.

This database was found damaged and set aside as %s.
Cause: %v

What can be read of it is being copied into a new database. If spoolfs is
interrupted, it begins again at the next start. Do not change anything here.
`, dir, cause)
}

func salvaged(dir string, cause error, r salvageReport, total DamageReport) string {
	var b strings.Builder
	fmt.Fprintf(&b, `%s

This database was found damaged and set aside as %s.
Cause: %v

%d rows (messages and their bookkeeping) were copied into the database that is
in use now. %d things could not be read:
`, reportDone, dir, cause, r.rows, r.damaged)
	for _, line := range r.details {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	fmt.Fprintf(&b, `
Since the store was made, %d things could not be read and %d messages that the
counters knew were not found.

What to do: look for the reason (the log of the kernel, the health of the disk,
memory). The files here are as they were found, for somebody who can read more of
them. spoolfs does not need them any more: remove the directory when you do not
either.
`, total.Damaged, total.Missing)
	return b.String()
}
