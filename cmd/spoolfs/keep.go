package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/fs/device"
	"spoolfs/fs/keeper"
)

// keeperFlags are the flags of the process that outlives the daemon.
type keeperFlags struct {
	Keeper bool `default:"true" negatable:"" help:"Let a small process of its own hold the mount, which outlives the daemon: a crash or an upgrade is a short pause for writers, and no error."`

	User string `placeholder:"NAME" help:"User of the daemon, who needs the store and nothing else; root only holds the mount (the user who mounts)."`

	RequestTimeout time.Duration `default:"30s" help:"How long the daemon may take for a request, the disk apart, before it is replaced (${default})."`
	WorkerTimeout  time.Duration `default:"1m" help:"How long writers wait for a daemon that cannot be started before they get an error (${default})."`

	Source string `config:"-" env:"-" hidden:"" placeholder:"NAME" help:"What the mount is said to be of, in /proc/mounts; of mount.fuse.spoolfs, without a keeper not heeded."`
	Resend bool   `default:"true" negatable:"" hidden:"" help:"Let the kernel send requests again after a crash, if it can."`
}

func (f *keeperFlags) check() error {
	if err := errors.Join(wantMore("request_timeout", f.RequestTimeout), wantMore("worker_timeout", f.WorkerTimeout)); err != nil {
		return err
	}
	if f.User != "" && !f.Keeper {
		return badSetting("user", "needs the keeper: leave out --no-keeper, or start the program as that user")
	}
	return nil
}

// keep holds the mount and has workers serve it.
func (c *mountCommand) keep(env *environment) error {
	log := c.keeperLog(env)
	opts, err := c.keeperOptions(env, log)
	if err != nil {
		return err
	}
	k, err := c.openKeeper(env, opts)
	if err != nil {
		return err
	}
	for {
		stop := forwardSignals(k)
		err = k.Run(env.ctx)
		if !errors.Is(err, keeper.ErrUpgrade) {
			stop()
			return errors.Join(keeperError(err, log), k.Close())
		}
		// One that comes before the new version takes it must not end it.
		signal.Ignore(syscall.SIGHUP, syscall.SIGUSR2)
		stop()
		k.UpgradeFailed(reexec(k, env, opts))
	}
}

// keeperLog is the log of a keeper, which says little, and all of it counts.
func (c *mountCommand) keeperLog(env *environment) *slog.Logger {
	level := &slog.LevelVar{}
	setLevel(level, c.LogLevel)
	opts := logOptions{level, c.LogFormat, isJournal(env.stderr, os.Getenv("JOURNAL_STREAM"))}
	return slog.New(opts.handler(env.stderr))
}

func (c *mountCommand) keeperOptions(env *environment, log *slog.Logger) (keeper.Options, error) {
	credential, err := c.workerUser()
	if err != nil {
		return keeper.Options{}, err
	}
	state := keeper.State{Binary: ownPath()}
	if env.baton != nil {
		state = env.baton.State
	}
	state.Version = version()
	score, err := keeper.ProtectSelf()
	if env.baton != nil {
		score = env.baton.OOMScore
	} else if err != nil {
		log.Debug("the keeper is not protected when memory is short", "error", err)
	}
	opts := keeper.Options{
		Binary: state.Binary, Dir: c.Mountpoint, Source: c.Source, Credential: credential, OOMScore: score,
		Start:          keeper.Start{Args: env.args, State: state},
		RequestTimeout: c.RequestTimeout, WorkerTimeout: c.WorkerTimeout,
		StopTimeout: c.StopFiles + c.StopSend + 2*stopLimit,
		NoResend:    !c.Resend,
		Detach:      inBackground(),
		Manager:     env.manager, Logger: log,
	}
	opts.Verify = func(memoryFD int) error { return verifyBinary(opts, memoryFD) }
	return opts, nil
}

// openKeeper takes over the mount of a former keeper, or makes one.
func (c *mountCommand) openKeeper(env *environment, opts keeper.Options) (*keeper.Keeper, error) {
	if env.left != nil {
		k, err := keeper.Adopt(opts, env.left.device, env.left.memory)
		if err == nil {
			opts.Logger.Info("took over the mount", "mountpoint", c.Mountpoint)
			return k, nil
		}
		opts.Logger.Error("the mount of the last run cannot be taken over: it is replaced, and what is open fails", "error", err)
		if err := env.manager.Forget(); err != nil {
			opts.Logger.Warn("service manager", "error", err)
		}
	}
	k, err := awaitMount(env.ctx, opts)
	if err != nil {
		return nil, withCode(exitCannot, err)
	}
	return k, nil
}

// awaitMount mounts when a former daemon, which is dying, has let go.
func awaitMount(ctx context.Context, opts keeper.Options) (*keeper.Keeper, error) {
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		k, err := keeper.New(opts)
		if !errors.Is(err, device.ErrMounted) {
			return k, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// keeperError is how the end of a keeper looks to who has started it.
func keeperError(err error, log *slog.Logger) error {
	var exit *keeper.ExitError
	switch {
	case errors.Is(err, keeper.ErrHandedOver):
		log.Info("stopped; the mount waits for the next start")
		return nil
	case errors.As(err, &exit) && exit.Code > 0:
		return exitStatus(exit.Code) // it has said why
	case errors.Is(err, keeper.ErrNoWorker):
		return withCode(exitUnavailable, err)
	case err != nil && codeOf(err) == exitInternal:
		return withCode(exitCannot, err)
	}
	return err
}

// forwardSignals passes on what the keeper is told by signals.
func forwardSignals(k *keeper.Keeper) (stop func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR2)
	go func() {
		for s := range signals {
			if s == syscall.SIGHUP {
				k.Reload()
			} else {
				k.Upgrade()
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// ownPath is the path of this program as it was called: where the next version
// of it will be.
func ownPath() string {
	self, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	called, err := exec.LookPath(os.Args[0])
	if err != nil {
		return self
	}
	called, err = filepath.Abs(called)
	if err != nil || !sameFile(called, "/proc/self/exe") {
		return self
	}
	return called
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// verifyTimeout is how long the program on disk may take to say that it can take
// over.
const verifyTimeout = 30 * time.Second

// verifyBinary asks the program on disk whether it can take over: whether it
// runs, knows the flags and the configuration, and the memory.
func verifyBinary(opts keeper.Options, memoryFD int) error {
	ctx, cancel := context.WithTimeout(context.Background(), verifyTimeout)
	defer cancel()
	fd, err := unix.FcntlInt(uintptr(memoryFD), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	memory := os.NewFile(uintptr(fd), "memory")
	defer memory.Close()
	args, err := json.Marshal(opts.Start.Args)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, opts.Binary, "worker", "--check", opts.Dir)
	cmd.Stdin = strings.NewReader(string(args))
	cmd.ExtraFiles = []*os.File{memory}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: opts.Credential, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s cannot take over: %w: %.500s", opts.Binary, err, strings.TrimSpace(string(out)))
	}
	return nil
}
