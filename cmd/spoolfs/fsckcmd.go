package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"spoolfs/queue"
)

// fsckCommand is "spoolfs fsck".
type fsckCommand struct {
	Repair bool `env:"-" help:"Make counters and indexes anew, and set aside what cannot be read, as a start of the daemon does. No message is deleted."`
	JSON   bool `name:"json" env:"-" help:"Print the report as JSON."`

	Store string `arg:"" help:"Directory of the store, which no daemon may have open."`
}

// Help is shown by kong.
func (*fsckCommand) Help() string {
	return `Reads every record of a store that nobody serves, and compares counters and
indexes with them. It changes nothing without --repair. Exit codes: 0 the
store is sound, or has been repaired; 65 it is not; 75 a daemon has it open.

Examples:

    spoolfs fsck /var/lib/spoolfs
    spoolfs fsck --repair /var/lib/spoolfs
    spoolfs fsck --json /mnt/recovered/spoolfs | jq .problems
`
}

// fsckReport is what fsck prints as JSON. Keys are added later and never renamed.
type fsckReport struct {
	Store string `json:"store"`
	Sound bool   `json:"sound"` // without problems, or repaired
	*queue.CheckReport
}

// Run is called by kong.
func (c *fsckCommand) Run(env *environment) error {
	report, err := c.check()
	if err != nil {
		return err
	}
	r := &fsckReport{Store: c.Store, Sound: report.Count == 0 || report.Repaired, CheckReport: report}
	if r.Problems == nil {
		r.Problems = []queue.Problem{}
	}
	text := []byte(r.text())
	if c.JSON {
		text = jsonText(r)
	}
	if _, err := env.stdout.Write(text); err != nil {
		return withCode(exitIO, err)
	}
	if !r.Sound {
		return exitStatus(exitData)
	}
	return nil
}

// check touches nothing that is no store.
func (c *fsckCommand) check() (*queue.CheckReport, error) {
	if !c.isStore() {
		return nil, withCode(exitData, fmt.Errorf("there is no store in %s", c.Store))
	}
	report, err := queue.Check(c.Store, queue.CheckOptions{
		Options: queue.Options{Logger: slog.New(slog.DiscardHandler), LockTimeout: -1}, Repair: c.Repair,
	})
	switch {
	case errors.Is(err, queue.ErrLocked):
		return nil, withCode(exitTemporary, fmt.Errorf("%w: fsck is for a store that nobody serves; \"spoolfs status\" shows what the daemon knows", err))
	case errors.Is(err, queue.ErrNewerStore):
		return nil, withCode(exitConfig, err)
	case err != nil:
		return nil, withCode(exitIO, err)
	}
	return report, nil
}

// isStore reports whether the directory has anything of a store.
func (c *fsckCommand) isStore() bool {
	for _, name := range []string{"FORMAT", "db"} {
		if _, err := os.Lstat(filepath.Join(c.Store, name)); !errors.Is(err, os.ErrNotExist) {
			return true // or it cannot be told
		}
	}
	return false
}

// shownProblems is how many problems are shown to people.
const shownProblems = 20

// text is the report for people.
func (r *fsckReport) text() string {
	var b strings.Builder
	if len(r.Routes) > 0 {
		fmt.Fprintf(&b, "%-18s %10s %10s %10s %10s %8s %8s %10s\n", "ROUTE", "READY", "STAGED", "DELAYED", "DEAD", "PARTIAL", "CORRUPT", "SIZE")
	}
	for _, route := range r.Routes {
		fmt.Fprintf(&b, "%-18s %10d %10d %10d %10d %8d %8d %10s\n", oneLine(route.Name), route.Ready, route.Staged, route.Delayed, route.Dead, route.Partial, route.Corrupt, size(route.Bytes))
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		fmt.Fprintf(&b, "%d problems of kind %s\n", r.Kinds[kind], kind)
	}
	for i, p := range r.Problems {
		if i == shownProblems {
			fmt.Fprintf(&b, "  and %d more: --json lists the first 1,000\n", r.Count-shownProblems)
			break
		}
		fmt.Fprintf(&b, "  %s: %s%s\n", p.Kind, routePrefix(p.Route), oneLine(p.Detail))
	}
	return b.String() + r.damage() + r.verdict()
}

func routePrefix(route string) string {
	if route == "" {
		return ""
	}
	return "route " + oneLine(route) + ": "
}

// damage tells of former times.
func (r *fsckReport) damage() string {
	d := r.Damage
	if d.Damaged == 0 && d.Missing == 0 {
		return ""
	}
	text := fmt.Sprintf("earlier: %d rows, blocks or files could not be read and were set aside, with %d messages missing since", d.Damaged, d.Missing)
	if d.Dir != "" {
		text += fmt.Sprintf("; the last ones at %s in %s, see the REPORT there", d.At.UTC().Format(time.RFC3339), d.Dir)
	}
	return text + "\n"
}

func (r *fsckReport) verdict() string {
	switch {
	case r.Count == 0:
		return r.Store + ": sound\n"
	case r.Repaired:
		return fmt.Sprintf("%s: repaired, %d problems\n", r.Store, r.Count)
	}
	return fmt.Sprintf("%s: %d problems; the next start of the daemon repairs it, or \"spoolfs fsck --repair\"\n", r.Store, r.Count)
}
