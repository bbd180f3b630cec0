package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/units"
	"golang.org/x/sys/unix"

	"spoolfs/queue"
)

// mountCommand are the flags of "spoolfs mount". Each is also a variable of the
// environment and a key of the configuration files, except those with
// config:"-". What can change while the daemon runs has reload:"yes"; see also
// routeFlags.
type mountCommand struct {
	configured `embed:""`
	Mountpoint string `arg:"" optional:"" env:"SPOOLFS_MOUNTPOINT" help:"Directory to mount on; it may also stand in the configuration."`

	Store      string `placeholder:"DIR" help:"Directory of the messages that are not confirmed yet, on a local disk. It is made if it is not there. The default is systemd's state directory, if there is one."`
	routeFlags `embed:""`

	NetworkStore bool             `help:"Allow a store on a network file system. A server that is away then stops every writer."`
	StoreTimeout time.Duration    `reload:"yes" default:"1m" help:"How long a writer waits for a disk that does not answer before it gets an error (${default})."`
	OpenLimit    int64            `reload:"yes" default:"262144" placeholder:"N" help:"Files that may be open or held at a time (${default})."`
	BufferLimit  units.Base2Bytes `reload:"yes" default:"512MiB" placeholder:"SIZE" help:"Memory for what is written to open files (${default})."`

	MaxBytes    units.Base2Bytes `reload:"yes" placeholder:"SIZE" help:"Size of the messages that the store may hold, such as 10GiB (half of its file system)."`
	MaxMessages uint64           `reload:"yes" placeholder:"N" help:"Messages that the store may hold (no limit)."`
	UserShare   float64          `reload:"yes" default:"0.5" placeholder:"PART" help:"Part of these, and of open files and memory, that one user may fill; root may fill all (${default})."`

	StopFiles time.Duration `reload:"yes" default:"10s" help:"How long a stop waits for files that are open (${default})."`
	StopSend  time.Duration `reload:"yes" default:"10s" help:"How long a stop goes on sending what the broker takes (${default})."`

	StopEmpty bool `reload:"yes" help:"Go on sending for all of --stop-send while anything is queued, even if the broker is away: for nodes that are shut down for good."`

	Janitor      []string `sep:"none" placeholder:"DIR" help:"Plain directory that is emptied, too, such as one of retry files; may be given more than once."`
	janitorFlags `embed:""`

	StatusGroup string `reload:"yes" placeholder:"NAME" help:"Group whose members may do with .status what root may: read and remove messages, give commands (none)."`

	LogLevel string `reload:"yes" default:"info" enum:"debug,info,warn,error" help:"Least level of messages on stderr: ${enum} (${default})."`

	observeFlags `embed:""`
	keeperFlags  `embed:""`

	statusGroup uint32
}

// Run is called by kong.
func (c *mountCommand) Run(env *environment) error {
	if err := c.check(); err != nil {
		return err
	}
	// The mountpoint comes first: nothing but this may ask it while it may be
	// that of a daemon that is stopped.
	lock, err := awaitMountpoint(env.ctx, c.Mountpoint)
	if err != nil {
		return err
	}
	defer lock.Close()
	if c.Keeper {
		return c.keep(env)
	}
	addProcessors()
	d, err := newDaemon(c, env)
	if err != nil {
		return err
	}
	return errors.Join(d.run(env.ctx), d.close())
}

// limits are those of the queue.
func (c *mountCommand) limits() queue.Limits {
	return queue.Limits{Bytes: uint64(c.MaxBytes), Messages: c.MaxMessages, UserShare: c.UserShare}
}

// check refuses what cannot work before anything is touched.
func (c *mountCommand) check() error { return c.origins.placed(c.checkAll()) }

func (c *mountCommand) checkAll() error {
	if err := c.checkValues(); err != nil {
		return err
	}
	return c.checkPlaces()
}

// checkValues checks what needs no look at files, but for the groups.
func (c *mountCommand) checkValues() error {
	if err := errors.Join(c.routeFlags.check(), c.keeperFlags.check()); err != nil {
		return err
	}
	if err := c.checkRoutes(&c.routeFlags); err != nil {
		return err
	}
	if err := c.observeFlags.check(); err != nil {
		return err
	}
	if !(c.UserShare > 0 && c.UserShare <= 1) { // nor NaN
		return badSetting("user_share", "want more than 0 and at most 1, such as 0.5 for the half, not %g", c.UserShare)
	}
	if err := c.janitorFlags.check(); err != nil {
		return err
	}
	if err := errors.Join(wantMore("buffer_limit", c.BufferLimit), wantMore("open_limit", c.OpenLimit), wantMore("store_timeout", c.StoreTimeout)); err != nil {
		return err
	}
	var err error
	c.statusGroup, err = groupID(c.StatusGroup)
	return err
}

// checkPlaces makes the paths absolute, and sees that the store is not within
// the mount, where the daemon would wait for itself.
func (c *mountCommand) checkPlaces() error {
	if c.Mountpoint == "" {
		return withCode(exitUsage, errors.New("no mountpoint is given: name a directory on the command line, or as mountpoint in the configuration"))
	}
	if c.Store == "" {
		return withCode(exitUsage, errors.New("no store is given: use --store=DIR, or store in the configuration"))
	}
	for _, p := range []*string{&c.Mountpoint, &c.Store} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return withCode(exitUsage, err)
		}
		*p = abs
	}
	if within(c.Store, c.Mountpoint) {
		return badSetting("store", "%s lies within the mountpoint %s: give a directory elsewhere", c.Store, c.Mountpoint)
	}
	if err := c.checkJanitors(); err != nil {
		return err
	}
	if err := isThere(c.Mountpoint); errors.Is(err, os.ErrNotExist) {
		return withCode(exitCannot, fmt.Errorf("mountpoint %s is not there: make it with mkdir", c.Mountpoint))
	}
	return nil
}

// isThere says whether a name is there, without a question to a file system
// that is mounted on it, whose daemon may be stopped.
func isThere(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	return unix.Close(fd)
}

// within reports whether path is dir or lies in it, links resolved as far as
// they can be.
func within(path, dir string) bool {
	rel, err := filepath.Rel(resolve(dir), resolve(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// resolve follows the links of the part of a path that exists. It does not ask
// the last element, which may be a dead mount.
func resolve(path string) string {
	dir, base := filepath.Split(path)
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(resolved, base)
	}
	if dir == path || dir == "" {
		return path
	}
	return filepath.Join(resolve(filepath.Clean(dir)), base)
}
