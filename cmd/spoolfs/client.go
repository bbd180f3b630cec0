package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target are the arguments of commands on a running daemon.
type target struct {
	AnswerWithin time.Duration `default:"10s" env:"-" placeholder:"DURATION" help:"How long the daemon may take for an answer before it counts as hung (${default})."`

	Mountpoint string `arg:"" optional:"" help:"Where the spool is mounted. Not needed if only one is."`
}

// client speaks with a running daemon through the files of its mount, with the
// rights of who runs the command.
type client struct {
	mount  spoolMount
	access *accessor
	ctx    context.Context
}

// open finds the spool. It does not ask the daemon yet.
func (t *target) open(env *environment) (*client, error) {
	if t.AnswerWithin <= 0 {
		return nil, withCode(exitUsage, fmt.Errorf("--answer-within=%s: want more than 0, such as 10s", t.AnswerWithin))
	}
	m, err := findMount(t.Mountpoint)
	if err != nil {
		return nil, err
	}
	return &client{mount: m, access: &accessor{within: t.AnswerWithin}, ctx: env.ctx}, nil
}

func (c *client) close() { c.access.close() }

// path is that of a file of the status tree.
func (c *client) path(name ...string) string {
	return filepath.Join(append([]string{c.mount.Mountpoint, ".status"}, name...)...)
}

// read returns the content of a file of the status tree.
func (c *client) read(name ...string) ([]byte, error) {
	a, err := c.access.do(c.ctx, accessRequest{Op: opRead, Path: c.path(name...)})
	return a.Data, c.explain("read "+filepath.Join(name...), err)
}

// status asks for the numbers.
func (c *client) status() (status, error) {
	var s status
	text, err := c.read("status.json")
	if err == nil {
		if err = json.Unmarshal(text, &s); err != nil {
			err = withCode(exitInternal, fmt.Errorf("status.json of %s: %w", c.mount.Mountpoint, err))
		}
	}
	return s, err
}

// command writes a command to ctl.
func (c *client) command(line string) error {
	_, err := c.access.do(c.ctx, accessRequest{Op: opWrite, Path: c.path("ctl"), Data: []byte(line + "\n")})
	if errors.Is(err, syscall.EINVAL) {
		return withCode(exitUnavailable, fmt.Errorf("the daemon of %s does not know the command %q: it is of another version than this program, restart it", c.mount.Mountpoint, line))
	}
	shown, _, _ := strings.Cut(line, " job=")
	return c.explain("give the command "+strconv.Quote(shown), err)
}

// explain makes of an error what happened, and what to do, with an exit code.
func (c *client) explain(doing string, err error) error {
	where := c.mount.Mountpoint
	var explained *codedError
	say := func(code int, format string, args ...any) error {
		return withCode(code, &explainedError{fmt.Sprintf(format, args...), err})
	}
	switch {
	case err == nil, errors.As(err, &explained):
		return err
	case errors.Is(err, errHung):
		return say(exitUnavailable, "the daemon of %s has not answered within %s: it is stopped (kill -CONT continues it), its disk does not answer, or it hangs. Look at its log; if it stays so kill it with SIGKILL and start it again: what was closed is safe", where, c.access.within)
	case errors.Is(err, syscall.ENOTCONN), errors.Is(err, syscall.ECONNABORTED):
		return say(exitUnavailable, "the daemon of %s is gone and has left a dead mount: start it again with \"spoolfs mount\", or take the mount away with \"spoolfs unmount\"", where)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return say(exitPermission, "%s: not allowed: %s", doing, c.whoMay())
	case errors.Is(err, syscall.ENOENT) && c.isUnmounted():
		return say(exitUnavailable, "no spool is mounted on %s any more", where)
	case errors.Is(err, context.Canceled):
		return say(exitTemporary, "%s: interrupted", doing)
	}
	return withCode(exitIO, fmt.Errorf("%s of %s: %w", doing, where, err))
}

// explainedError is an error that says what its cause means.
type explainedError struct {
	text  string
	cause error
}

func (e *explainedError) Error() string { return e.text }
func (e *explainedError) Unwrap() error { return e.cause }

func (c *client) isUnmounted() bool {
	mounts, err := readMounts()
	if err != nil {
		return false
	}
	_, ok := mountAt(mounts, c.mount.Mountpoint)
	return !ok
}

// whoMay says who may look into messages and give commands.
func (c *client) whoMay() string {
	a, err := c.access.do(c.ctx, accessRequest{Op: opStat, Path: c.path("ctl")})
	if err != nil || a.Info.GID == 0 {
		return "messages and commands are for root; \"spoolfs mount --status-group=NAME\" lets a group, too"
	}
	name := strconv.FormatUint(uint64(a.Info.GID), 10)
	if g, err := user.LookupGroupId(name); err == nil {
		name = g.Name
	}
	return fmt.Sprintf("messages and commands are for root and the group %s, and user %d is not in it", name, os.Getuid())
}
