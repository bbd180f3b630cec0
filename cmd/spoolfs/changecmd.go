package main

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// change are the arguments of commands that do something to messages.
type change struct {
	selection
	All    bool `env:"-" help:"All of them."`
	DryRun bool `env:"-" help:"Only count what would be done."`
	JSON   bool `name:"json" env:"-" help:"Print the result as JSON."`
	idsAndMount
}

// redriveCommand is "spoolfs dead redrive" and its like.
type redriveCommand struct{ change }

// Help is shown by kong.
func (*redriveCommand) Help() string {
	return `Give IDs, or flags that choose, or --all. A dead letter goes again with its
ID; what never was a message is decoded anew, and stays if it still is none
(exit code 65). A delayed message is tried now.

Examples:

    spoolfs dead redrive --reason=refused-by-broker
    spoolfs dead redrive 21408219f26926da57ecc5c2a3a7c7f5-1
    spoolfs partial redrive --all --dry-run
`
}

// Run is called by kong.
func (c *redriveCommand) Run(env *environment, k *kong.Context) error {
	return c.run(env, kindOf(k), "redrive")
}

// purgeCommand is "spoolfs dead purge" and its like.
type purgeCommand struct{ change }

// Help is shown by kong.
func (*purgeCommand) Help() string {
	return `Give IDs, or flags that choose, or --all. What is on its way to the broker
at the moment stays (exit code 75).

Examples:

    spoolfs dead purge --older-than=30d
    spoolfs dead purge --reason=not-json --dry-run
    spoolfs pending purge --all /run/spool
`
}

// Run is called by kong.
func (c *purgeCommand) Run(env *environment, k *kong.Context) error {
	return c.run(env, kindOf(k), "purge")
}

// changed is what has been done, as --json prints it. Keys are added later and
// never renamed.
type changed struct {
	Action  string            `json:"action"`
	Kind    string            `json:"kind"`
	DryRun  bool              `json:"dry_run"`
	Matched uint64            `json:"matched"`
	Done    uint64            `json:"done"`
	Refused uint64            `json:"refused"` // are no messages, and stay
	Busy    uint64            `json:"busy"`    // were on their way to the broker, or are gone
	Refusal string            `json:"refusal,omitempty"`
	Reasons map[string]uint64 `json:"reasons,omitempty"`
	Errors  []string          `json:"errors,omitempty"`
}

func (c *change) run(env *environment, kind, action string) error {
	ids, t := c.split()
	if err := c.checkChoice(kind, ids); err != nil {
		return err
	}
	cl, err := t.open(env)
	if err != nil {
		return err
	}
	defer cl.close()
	r := &changed{Action: action, Kind: kind, DryRun: c.DryRun, Reasons: map[string]uint64{}}
	if len(ids) > 0 {
		err = c.each(cl, r, ids)
	} else {
		err = c.jobs(cl, r)
	}
	if err != nil && r.Done == 0 {
		return err
	}
	return errors.Join(err, r.print(env, c.JSON))
}

func (c *change) checkChoice(kind string, ids []string) error {
	if err := c.check(); err != nil {
		return err
	}
	switch chosen := c.isSet() || c.All; {
	case len(ids) > 0 && (chosen || c.DryRun):
		return withCode(exitUsage, errors.New("give IDs, or flags that choose, and not both"))
	case len(ids) == 0 && !chosen:
		return withCode(exitUsage, fmt.Errorf("say which %s: give IDs, --reason, --older-than, --route, or --all", kindNoun[kind]))
	}
	return nil
}

// each changes messages by their IDs, as rm and mv do.
func (c *change) each(cl *client, r *changed, ids []string) error {
	routes, err := cl.routeNames("")
	if err != nil {
		return err
	}
	for _, id := range ids {
		r.Matched++
		path, _, err := cl.locate(r.Kind, id, routes, r.dirs())
		if err == nil {
			q := accessRequest{Op: opRemove, Path: path}
			if r.Action == "redrive" {
				q.Op, q.To = opRename, cl.mount.Mountpoint+"/"+fileName(id[max(0, len(id)-64):])
			}
			_, err = cl.access.do(cl.ctx, q)
		}
		switch {
		case err == nil:
			r.Done++
		case errors.Is(err, syscall.EBADMSG):
			r.Refused++
			r.Refusal = id + " is no message"
		case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.ENOENT):
			r.Busy++
		case codeOf(err) == exitData:
			r.Errors = append(r.Errors, err.Error())
		default:
			return cl.explain(r.Action+" "+id, err)
		}
	}
	return nil
}

// jobs has the daemon work through what is chosen.
func (c *change) jobs(cl *client, r *changed) error {
	if _, err := cl.routeNames(c.Route); err != nil {
		return err
	}
	action := r.Action
	if c.DryRun {
		action = "count"
	}
	for _, state := range slices.Backward(r.dirs()) {
		s, err := cl.job(rand.Text(), c.command(action, state))
		r.add(s)
		if err != nil {
			return err
		}
	}
	return nil
}

// dirs are where that can be done: what is pending is ready already.
func (r *changed) dirs() []string {
	if r.Kind == "pending" && r.Action == "redrive" {
		return []string{"delayed"}
	}
	return kindDirs[r.Kind]
}

func (r *changed) add(s jobStatus) {
	r.Matched += s.Matched
	r.Done += s.Done
	r.Refused += s.Refused
	r.Refusal = cmp.Or(s.Refusal, r.Refusal)
	if !r.DryRun {
		r.Busy += s.Matched - s.Done - s.Refused
	}
	for reason, n := range s.Reasons {
		r.Reasons[reason] += n
	}
}

// job gives a command under an ID, and waits until the daemon has done it.
func (c *client) job(id, command string) (jobStatus, error) {
	if err := c.command(command + " job=" + id); err != nil {
		return jobStatus{}, err
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		s, err := c.jobStatus(id)
		switch {
		case err != nil:
			return s, err
		case s.State == jobDone:
			return s, nil
		case s.State == jobFailed:
			return s, withCode(exitIO, fmt.Errorf("the daemon of %s could not go on after %d of %d: %s", c.mount.Mountpoint, s.Done, s.Matched, s.Error))
		}
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return s, withCode(exitTemporary, errors.New("interrupted; the daemon goes on, see .status/jobs"))
		}
	}
}

func (c *client) jobStatus(id string) (jobStatus, error) {
	text, err := c.read("jobs")
	if err != nil {
		return jobStatus{}, err
	}
	for line := range bytes.Lines(text) {
		var s jobStatus
		if json.Unmarshal(line, &s) == nil && s.ID == id {
			return s, nil
		}
	}
	return jobStatus{}, withCode(exitTemporary, fmt.Errorf("the daemon of %s has been restarted: what was done is done, give the command once more", c.mount.Mountpoint))
}

// print tells the result, and returns an error if something is left undone.
func (r *changed) print(env *environment, asJSON bool) error {
	text := []byte(r.text())
	if asJSON {
		text = jsonText(r)
	}
	if _, err := env.stdout.Write(text); err != nil {
		return withCode(exitIO, err)
	}
	switch {
	case len(r.Errors) > 0:
		return withCode(exitData, errors.New(strings.Join(r.Errors, "\nspoolfs: ")))
	case r.Refused > 0:
		return withCode(exitData, fmt.Errorf("%d %s hold no message, and stay: %s", r.Refused, kindNoun[r.Kind], r.Refusal))
	case r.Busy > 0:
		return withCode(exitTemporary, fmt.Errorf("%d %s were on their way to the broker, or somebody else was faster", r.Busy, kindNoun[r.Kind]))
	}
	return nil
}

func (r *changed) text() string {
	done := map[string]string{"redrive": "redrove", "purge": "purged"}[r.Action]
	line := fmt.Sprintf("%s %d of %d %s\n", done, r.Done, r.Matched, kindNoun[r.Kind])
	if r.DryRun {
		line = fmt.Sprintf("would %s %d %s\n", r.Action, r.Matched, kindNoun[r.Kind])
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		line += fmt.Sprintf("%8d %s\n", r.Reasons[reason], reason)
	}
	return line
}
