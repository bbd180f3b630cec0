package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"
)

// listCommand is "spoolfs dead ls" and its like.
type listCommand struct {
	selection
	Limit int  `default:"100" placeholder:"N" env:"-" help:"How many at most (${default})."`
	All   bool `env:"-" help:"All, however many there are."`
	JSON  bool `name:"json" env:"-" help:"Print a line of JSON for each."`
	target
}

// Help is shown by kong.
func (*listCommand) Help() string {
	return `Examples:

    spoolfs dead ls
    spoolfs dead ls --reason=not-json --older-than=1h /run/spool
    spoolfs dead ls --all --json | jq -r .reason | sort | uniq -c
    spoolfs pending ls --limit=1      # the oldest
`
}

// errEnough ends a listing.
var errEnough = errors.New("enough")

// Run is called by kong.
func (c *listCommand) Run(env *environment, k *kong.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Limit <= 0 {
		return withCode(exitUsage, fmt.Errorf("--limit=%d: want more than 0; --all lists all", c.Limit))
	}
	cl, err := c.open(env)
	if err != nil {
		return err
	}
	defer cl.close()
	l := &lister{listCommand: c, env: env, client: cl, now: time.Now()}
	return l.run(kindOf(k))
}

// lister prints a list as it reads it.
type lister struct {
	*listCommand
	env    *environment
	client *client
	now    time.Time
	shown  int
}

func (l *lister) run(kind string) error {
	routes, err := l.client.routeNames(l.Route)
	if err != nil {
		return err
	}
	for _, route := range routes {
		for _, dir := range kindDirs[kind] {
			err := l.client.eachName(l.client.path("routes", route, dir), func(names []string) error {
				return l.page(route, dir, names)
			})
			if errors.Is(err, errEnough) {
				fmt.Fprintf(l.env.stderr, "(the first %d; there are more: --all lists all, --limit=N more)\n", l.shown)
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	if l.shown == 0 && !l.JSON {
		fmt.Fprintf(l.env.stderr, "(no %s)\n", kindNoun[kind])
	}
	return nil
}

// page prints what matches of a page of names.
func (l *lister) page(route, dir string, names []string) error {
	for len(names) > 0 {
		a, err := l.client.access.do(l.client.ctx, accessRequest{Op: opHeads, Path: l.client.path("routes", route, dir), Names: names})
		if err != nil {
			return l.client.explain("read messages", err)
		}
		for _, head := range a.Heads {
			m := parseListed(route, dir, head)
			if head == nil || !m.matches(&l.selection, l.now) {
				continue
			}
			if !l.All && l.shown == l.Limit {
				return errEnough
			}
			if err := l.print(&m); err != nil {
				return withCode(exitIO, err)
			}
		}
		names = names[max(1, len(a.Heads)):]
	}
	return nil
}

func (l *lister) print(m *listed) error {
	l.shown++
	if l.JSON {
		m.Head = nil
		return json.NewEncoder(l.env.stdout).Encode(m)
	}
	if l.shown == 1 {
		fmt.Fprintln(l.env.stdout, listHeader)
	}
	_, err := fmt.Fprintln(l.env.stdout, m.columns(l.now))
	return err
}
