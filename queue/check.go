package queue

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// CheckOptions of Check. The zero value only looks.
type CheckOptions struct {
	Options

	// Repair makes counters and indexes anew where they do not fit the
	// messages, and sets aside what cannot be read, as Open does. It never
	// deletes a message.
	Repair bool
}

// CheckReport is what Check has found.
type CheckReport struct {
	Routes []RouteReport `json:"routes"`

	// Problems lists what is wrong, the first 1,000 of Count; Kinds counts
	// them all by kind.
	Problems []Problem         `json:"problems"`
	Count    uint64            `json:"count"`
	Kinds    map[string]uint64 `json:"kinds,omitempty"`

	// Damage is what the store could not read in former times.
	Damage DamageReport `json:"damage"`

	// Repaired says that a second look, after the repair, found only problems
	// of single records, which become dead letters when they are leased.
	Repaired bool `json:"repaired"`
}

// RouteReport counts the messages of a route by a scan.
type RouteReport struct {
	Name    string `json:"name"`
	Ready   uint64 `json:"ready"` // or leased: nobody leases from a store that is closed
	Staged  uint64 `json:"staged"`
	Delayed uint64 `json:"delayed"`
	Dead    uint64 `json:"dead"`
	Partial uint64 `json:"partial"`
	Corrupt uint64 `json:"corrupt"` // of all these, cannot be decoded
	Stages  uint64 `json:"stages"`
	Hints   uint64 `json:"hints"` // rows that tell where the last message about something is
	Bytes   uint64 `json:"bytes"`
}

// Check verifies every record, counter and stage of a store that is not in use.
//
// Errors: ErrLocked, ErrNewerStore, or what the disk said. Damage is no error;
// it is in the report.
func Check(dir string, opts CheckOptions) (*CheckReport, error) {
	opts.ensureDefaults()
	c := &checker{dir: dir, opts: &opts, report: &CheckReport{}}
	if err := c.run(); err != nil {
		return nil, fmt.Errorf("check store %q: %w", dir, err)
	}
	c.report.Problems, c.report.Count, c.report.Kinds = c.found.list, c.found.count, c.found.kinds
	return c.report, nil
}

// checker is one run of Check.
type checker struct {
	dir    string
	opts   *CheckOptions
	report *CheckReport
	found  problems
}

func (c *checker) run() (err error) {
	if _, err := c.opts.FS.Stat(c.dir); err != nil {
		return err
	}
	exists, err := checkFormat(c.opts.FS, c.dir)
	if err != nil {
		return err
	}
	if !exists {
		c.found.add(Problem{Kind: "format", Detail: "FORMAT is missing or cannot be read"})
	}
	lock, err := lockStore(c.opts.FS, c.dir, c.opts.LockTimeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := c.look(); err != nil || !c.opts.Repair {
		return err
	}
	return c.repair(exists)
}

// look verifies the store and changes nothing.
func (c *checker) look() error {
	q := &Queue{dir: c.dir, opts: c.opts.Options}
	if _, err := c.opts.FS.Stat(q.database()); errors.Is(err, fs.ErrNotExist) {
		c.found.add(Problem{Kind: "store", Detail: "there is no database"})
		return nil
	}
	err := inspect(c.opts.FS, q.database())
	var a *audit
	if err == nil {
		a, err = auditReadOnly(c.opts.FS, q.database())
	}
	if a != nil {
		c.take(a)
	}
	if err != nil && isDamage(err) {
		c.found.add(Problem{Kind: "store", Detail: err.Error()})
		err = nil
	}
	return err
}

// auditReadOnly scans a database. It returns what it has found so far if that is
// damaged.
func auditReadOnly(fsys vfs.FS, dir string) (a *audit, err error) {
	err = guarded(func() (err error) {
		db, err := pebble.Open(dir, &pebble.Options{
			FS: unlockedFS{fsys}, ReadOnly: true, Logger: silentLogger{}, FormatMajorVersion: pebble.FormatNewest,
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		a, err = newAudit(db)
		return err
	})
	return a, err
}

// take enters what a scan has found.
func (c *checker) take(a *audit) {
	for _, p := range a.problems.list {
		c.found.add(p)
	}
	for kind, n := range a.problems.kinds { // and those that are not listed
		c.found.kinds[kind] += n - min(n, countKind(a.problems.list, kind))
	}
	c.found.count += a.problems.count - uint64(len(a.problems.list))
	c.report.Damage = a.damage
	c.report.Routes = nil
	stages := map[uint32]uint64{}
	for _, s := range a.stages {
		stages[s.route]++
	}
	for _, id := range sortedKeys(a.routes) {
		r := a.routes[id]
		f := r.found
		c.report.Routes = append(c.report.Routes, RouteReport{
			Name: r.name, Ready: f.pending.count, Staged: f.staged.count, Delayed: f.delayed.count, Dead: f.dead.count,
			Partial: f.partial.count, Corrupt: r.corrupt, Stages: stages[id], Hints: r.hints, Bytes: f.all().bytes,
		})
	}
}

func countKind(list []Problem, kind string) (n uint64) {
	for _, p := range list {
		if p.Kind == kind {
			n++
		}
	}
	return n
}

// repair opens the store as Open does, which sets aside what is damaged, makes
// counters and indexes anew, and looks again.
func (c *checker) repair(exists bool) error {
	if !exists {
		if err := writeFormat(c.opts.FS, c.dir); err != nil {
			return err
		}
	}
	q := newQueue(c.dir, c.opts.Options)
	if err := q.load(); err != nil {
		return err
	}
	_, err := repair(q.engine, DamageReport{})
	if err = errors.Join(err, q.engine.close()); err != nil {
		return err
	}
	first := c.found
	c.found = problems{}
	if err := c.look(); err != nil {
		return err
	}
	c.report.Repaired = c.found.count == c.found.kinds["record"]
	c.found = first
	return nil
}
