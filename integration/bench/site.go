package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The contestants that files are written to.
const (
	nullStock   = "null file system, go-fuse's server"
	nullC       = "null file system, libfuse"
	nullOwn     = "null file system, our loop, and a Pebble put"
	filesSynced = "files with fsync"
	filesPlain  = "files without fsync"
	oneProcess  = "spoolfs, no keeper"
	withKeeper  = "spoolfs"
	otherBuild  = "spoolfs, no keeper, other build"
)

// Contestants that are combinations.
const (
	spreadOne    = oneProcess + ", standing directories"
	spreadKeeper = withKeeper + ", standing directories"
)

// deadBroker is a broker that is away.
const deadBroker = "amqp://127.0.0.1:1/"

// startTime is how long a server may take until it is ready.
const startTime = 2 * time.Minute

// site is where a contestant takes files.
type site struct {
	name   string
	dir    string
	store  string
	log    string
	server *process // nil for a plain directory
}

// openSite starts a contestant. broker and exchange are those of spoolfs.
func (b *bench) openSite(name, broker, exchange string) (*site, error) {
	base, err := b.newDir("site")
	if err != nil {
		return nil, err
	}
	s := &site{name: name, dir: filepath.Join(base, "mnt"), store: filepath.Join(base, "store"), log: filepath.Join(base, "log")}
	if err := os.Mkdir(s.dir, 0o777); err != nil {
		return nil, err
	}
	return s, b.start(s, broker, exchange)
}

// start starts the server of a site.
func (b *bench) start(s *site, broker, exchange string) (err error) {
	cmd := b.command(s, broker, exchange)
	if cmd == nil {
		return nil
	}
	if s.server, err = startProcess(s.log, cmd); err != nil {
		return err
	}
	ready := s.server.saysReady
	if s.isSpool() {
		ready = func() bool { _, err := os.Stat(filepath.Join(s.dir, ".status")); return err == nil }
	}
	return s.server.until("ready", startTime, ready)
}

func (s *site) isSpool() bool { return strings.HasPrefix(s.name, withKeeper) }

// command is what serves a site.
func (b *bench) command(s *site, broker, exchange string) *exec.Cmd {
	p := b.programs
	switch s.name {
	case nullStock:
		return exec.Command(p.floor, "null", "stock", s.dir)
	case nullOwn:
		return exec.Command(p.floor, "null", "own", s.dir, s.store)
	case nullC:
		return exec.Command(p.null, s.dir)
	case oneProcess, withKeeper, otherBuild:
		program := p.spoolfs
		if s.name == otherBuild {
			program = b.opts.against
		}
		cmd := exec.Command(program, "mount", "--config=/dev/null", "--store="+s.store, "--exchange="+exchange, s.dir)
		if s.name != withKeeper {
			cmd.Args = append(cmd.Args, "--no-keeper")
		}
		for _, e := range os.Environ() {
			if !strings.HasPrefix(e, "SPOOLFS_") {
				cmd.Env = append(cmd.Env, e)
			}
		}
		cmd.Env = append(cmd.Env, "SPOOLFS_BROKER="+broker)
		return cmd
	}
	return nil
}

// stop ends the server. The files stay until the end of the run: where many have
// just been removed, ext4 makes new ones more slowly.
func (s *site) stop() error {
	if s.server == nil {
		return nil
	}
	server := s.server
	s.server = nil
	err := server.stop()
	if e := syscall.Unmount(s.dir, syscall.MNT_DETACH); e == nil {
		err = errors.Join(err, fmt.Errorf("%s ended, and its mount was still there", s.name))
	}
	return err
}

// cpu is the time that the server has used.
func (s *site) cpu() time.Duration {
	if s.server == nil {
		return 0
	}
	return s.server.cpu()
}

// awaitConfirmed waits until the broker has confirmed so many messages.
func (s *site) awaitConfirmed(ctx context.Context, messages int) error {
	var last error
	err := s.server.until("done with sending", time.Hour, func() bool {
		var st status
		st, last = s.status()
		return last != nil || ctx.Err() != nil || st.Publisher.Confirmed >= messages
	})
	return errors.Join(err, last, ctx.Err())
}
