package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/units"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// mountCommand are the flags of "spoolfs mount".
type mountCommand struct {
	Mountpoint string `arg:"" help:"Directory to mount on."`

	Store       string `required:"" placeholder:"DIR" help:"Directory of the messages that are not confirmed yet, on a local disk. It is made if it is not there."`
	brokerFlags `embed:""`

	Format       string           `default:"sarracenia" enum:"sarracenia,raw" help:"What files hold: sarracenia, a record a line, or raw, where the file is the message (${default})."`
	RoutingKey   string           `placeholder:"KEY" help:"Routing key of all messages, for --format=raw."`
	FileLimit    units.Base2Bytes `default:"64MiB" placeholder:"SIZE" help:"Size of a file, as far as it is not committed in instalments yet (${default})."`
	MessageLimit units.Base2Bytes `default:"16MiB" placeholder:"SIZE" help:"Size of a message; a longer line is set aside (${default})."`
	Linger       time.Duration    `default:"5s" help:"How long a file with a record a line stays open after its last close or fsync before its whole lines are committed (${default})."`
	HeldFor      time.Duration    `default:"24h" help:"How long a file with a temporary name waits for its rename before it is set aside (${default})."`
	StoreTimeout time.Duration    `default:"1m" help:"How long a writer waits for a disk that does not answer before it gets an error (${default})."`
	OpenLimit    int64            `default:"262144" placeholder:"N" help:"Files that may be open or held at a time (${default})."`
	BufferLimit  units.Base2Bytes `default:"512MiB" placeholder:"SIZE" help:"Memory for what is written to open files (${default})."`

	MaxBytes    units.Base2Bytes `placeholder:"SIZE" help:"Size of the messages that the store may hold, such as 10GiB (half of its file system)."`
	MaxMessages uint64           `placeholder:"N" help:"Messages that the store may hold (no limit)."`
	UserShare   float64          `default:"0.5" placeholder:"PART" help:"Part of these, and of open files and memory, that one user may fill; root may fill all (${default})."`

	StopFiles time.Duration `default:"10s" help:"How long a stop waits for files that are open (${default})."`
	StopSend  time.Duration `default:"10s" help:"How long a stop goes on sending what the broker takes (${default})."`

	StatusGroup string `placeholder:"NAME" help:"Group whose members may do with .status what root may: read and remove messages, give commands (none)."`

	LogLevel string `default:"info" enum:"debug,info,warn,error" help:"Least level of messages on stderr: ${enum} (${default})."`

	statusGroup uint32
}

// Run is called by kong.
func (c *mountCommand) Run(env *environment) error {
	if err := c.check(); err != nil {
		return err
	}
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
func (c *mountCommand) check() error {
	if err := c.brokerFlags.check(); err != nil {
		return err
	}
	if c.MaxBytes < 0 {
		return withCode(exitUsage, fmt.Errorf("--max-bytes=%s: want a size such as 10GiB or 500MiB", c.MaxBytes))
	}
	if c.UserShare <= 0 || c.UserShare > 1 {
		return withCode(exitUsage, fmt.Errorf("--user-share=%g: want more than 0 and at most 1, such as 0.5 for the half", c.UserShare))
	}
	if err := c.checkFiles(); err != nil {
		return err
	}
	var err error
	if c.statusGroup, err = groupID(c.StatusGroup); err != nil {
		return withCode(exitUsage, err)
	}
	return c.checkPlaces()
}

// checkFiles checks what there is to know of the files.
func (c *mountCommand) checkFiles() error {
	raw := c.Format == formatRaw
	switch {
	case raw && c.RoutingKey == "":
		return withCode(exitUsage, errors.New("--format=raw: give the routing key of the messages with --routing-key=KEY"))
	case !raw && c.RoutingKey != "":
		return withCode(exitUsage, errors.New("--routing-key is for --format=raw: records have their own"))
	case len(c.RoutingKey) > 255:
		return withCode(exitUsage, fmt.Errorf("--routing-key has %d bytes: AMQP takes 255", len(c.RoutingKey)))
	case min(c.FileLimit, c.MessageLimit, c.BufferLimit) <= 0 || c.OpenLimit <= 0:
		return withCode(exitUsage, errors.New("--file-limit, --message-limit, --buffer-limit and --open-limit: want more than 0"))
	case min(c.Linger, c.HeldFor, c.StoreTimeout) <= 0:
		return withCode(exitUsage, errors.New("--linger, --held-for and --store-timeout: want more than 0, such as 5s"))
	}
	return nil
}

const formatRaw = "raw"

// format is what decodes the files.
func (c *mountCommand) format() ingest.Format {
	if c.Format == formatRaw {
		return ingest.NewRaw(c.RoutingKey)
	}
	return ingest.NewSarracenia(ingest.SarraceniaOptions{TopicPrefix: c.TopicPrefix, MaxLine: int(c.MessageLimit)})
}

// checkPlaces makes the paths absolute, and sees that the store is not within
// the mount, where the daemon would wait for itself.
func (c *mountCommand) checkPlaces() error {
	for _, p := range []*string{&c.Mountpoint, &c.Store} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return withCode(exitUsage, err)
		}
		*p = abs
	}
	if within(c.Store, c.Mountpoint) {
		return withCode(exitUsage, fmt.Errorf("--store=%s lies within the mountpoint %s: give a directory elsewhere", c.Store, c.Mountpoint))
	}
	if _, err := os.Lstat(c.Mountpoint); errors.Is(err, os.ErrNotExist) {
		return withCode(exitCannot, fmt.Errorf("mountpoint %s is not there: make it with mkdir", c.Mountpoint))
	}
	return nil
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
