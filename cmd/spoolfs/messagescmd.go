package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// messagesCommand is "spoolfs dead", "spoolfs pending" and "spoolfs partial".
type messagesCommand struct {
	Ls      listCommand    `cmd:"" aliases:"list" help:"List ${what}, the oldest first."`
	Show    showCommand    `cmd:"" help:"Show ${what} whole."`
	Redrive redriveCommand `cmd:"" help:"Have ${what} tried again now."`
	Purge   purgeCommand   `cmd:"" help:"Remove ${what} for good."`
}

// kindOf is the word of the command that has a subcommand: dead, pending or
// partial.
func kindOf(k *kong.Context) string { return k.Selected().Parent.Name }

// kindDirs are the directories of a route in which the messages of a kind lie.
var kindDirs = map[string][]string{
	"dead": {"dead"}, "pending": {"pending", "delayed"}, "partial": {"partial"},
}

// kindNoun is what messages of a kind are called.
var kindNoun = map[string]string{
	"dead": "dead letters", "pending": "messages", "partial": "partial files",
}

// selection are the flags that choose messages.
type selection struct {
	Route     string        `placeholder:"NAME" env:"-" help:"Those of this route (all routes)."`
	OlderThan time.Duration `placeholder:"DURATION" env:"-" help:"Those that were stored longer ago than this, such as 48h."`
	Reason    string        `placeholder:"TEXT" env:"-" help:"Those whose reason begins with this."`
}

func (s *selection) isSet() bool { return s.Route != "" || s.OlderThan != 0 || s.Reason != "" }

func (s *selection) check() error {
	if s.OlderThan < 0 {
		return withCode(exitUsage, fmt.Errorf("--older-than=%s: want more than 0, such as 48h", s.OlderThan))
	}
	return nil
}

// command is the line for ctl that begins a job.
func (s *selection) command(action, state string) string {
	words := []string{action, state}
	if s.Route != "" {
		words = append(words, "route="+url.QueryEscape(s.Route))
	}
	if s.Reason != "" {
		words = append(words, "reason="+url.QueryEscape(s.Reason))
	}
	if s.OlderThan != 0 {
		words = append(words, "older-than="+s.OlderThan.String())
	}
	return strings.Join(words, " ")
}

// idsAndMount are positional arguments: IDs, and perhaps a mountpoint as the last.
type idsAndMount struct {
	AnswerWithin time.Duration `default:"10s" env:"-" placeholder:"DURATION" help:"How long the daemon may take for an answer before it counts as hung (${default})."`

	Args []string `arg:"" optional:"" name:"id" help:"IDs of messages; the last may be the mountpoint, which is not needed if only one spool is mounted."`
}

// split tells the IDs from the mountpoint: that is a path that begins with a
// slash or a dot and a slash, or on which a spool is mounted.
func (a *idsAndMount) split() ([]string, *target) {
	t := &target{AnswerWithin: a.AnswerWithin}
	n := len(a.Args)
	if n == 0 || !isMountArgument(a.Args[n-1]) {
		return a.Args, t
	}
	t.Mountpoint = a.Args[n-1]
	return a.Args[:n-1], t
}

func isMountArgument(arg string) bool {
	if filepath.IsAbs(arg) || arg == "." || arg == ".." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") {
		return true
	}
	mounts, err := readMounts()
	if err != nil {
		return false
	}
	_, ok := mountAt(mounts, arg)
	return ok
}

// routeNames are the routes that are meant, as directories of the status tree.
func (c *client) routeNames(only string) ([]string, error) {
	all, err := c.list("routes")
	if err != nil || only == "" {
		return all, err
	}
	for _, name := range all {
		if name == fileName(only) {
			return []string{name}, nil
		}
	}
	return nil, withCode(exitUsage, fmt.Errorf("there is no route %q; there are: %s", only, strings.Join(all, " ")))
}

// list returns the names in a directory of the status tree that is not large.
func (c *client) list(name ...string) ([]string, error) {
	var all []string
	err := c.eachName(c.path(name...), func(page []string) error {
		all = append(all, page...)
		return nil
	})
	return all, err
}

// eachName calls f with the names in a directory, page by page. f may ask for
// other things meanwhile, but for no other directory.
func (c *client) eachName(dir string, f func([]string) error) error {
	r := accessRequest{Op: opList, Path: dir}
	for {
		a, err := c.access.do(c.ctx, r)
		if err != nil {
			return c.explain("list "+dir, err)
		}
		if len(a.Names) == 0 {
			return nil
		}
		if err := f(a.Names); err != nil {
			return err
		}
		r = accessRequest{Op: opMore}
	}
}

// fileName is the name of an ID in the status tree. A slash is written as there.
func fileName(id string) string { return strings.ReplaceAll(id, "/", "%2F") }

// locate finds the file of a message of a kind in some of its directories.
func (c *client) locate(kind, id string, routes, dirs []string) (path string, content []byte, err error) {
	for _, route := range routes {
		for _, dir := range dirs {
			for _, name := range idNames(kind, id) {
				path = c.path("routes", route, dir, name)
				a, err := c.access.do(c.ctx, accessRequest{Op: opRead, Path: path})
				if err == nil || !errors.Is(err, syscall.ENOENT) {
					return path, a.Data, c.explain("read "+path, err)
				}
			}
		}
	}
	return "", nil, c.noSuchMessage(kind, id)
}

// idNames are the names that an ID may mean: a partial file may also be given as
// it is called in .status/partial.
func idNames(kind, id string) []string {
	names := []string{fileName(id)}
	if i := strings.LastIndexByte(id, '.'); kind == "partial" && i >= 0 {
		names = append(names, fileName(id[i+1:]))
	}
	return names
}

func (c *client) noSuchMessage(kind, id string) error {
	return withCode(exitData, fmt.Errorf("there is no %s %q on %s: \"spoolfs %s ls\" lists them", strings.TrimSuffix(kindNoun[kind], "s"), id, c.mount.Mountpoint, kind))
}
