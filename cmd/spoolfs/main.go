// Spoolfs is a spool file system: what processes write into its mount as plain
// files is published to RabbitMQ, whatever the broker is doing meanwhile.
//
// This package reads flags and the environment, wires the other packages
// together, and turns errors into messages and exit codes. It is the only one
// that prints, handles signals or exits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/alecthomas/units"
)

func main() {
	ctx, cancel := signalContext()
	defer cancel()
	os.Exit(run(ctx, hidePasswords(os.Args)[1:], os.Stdout, os.Stderr))
}

// cli is the command line.
type cli struct {
	Mount   mountCommand   `cmd:"" help:"Mount the spool and publish what is written into it, in the foreground."`
	Status  statusCommand  `cmd:"" help:"Show the state of a mounted spool."`
	Check   checkCommand   `cmd:"" help:"Check configuration, store, mountpoint and broker, and say what to do."`
	Version versionCommand `cmd:"" help:"Print the version."`
	Probe   probeCommand   `cmd:"" hidden:"" help:"See whether a mount answers; the daemon asks that itself."`
}

// environment is what the commands get besides their flags.
type environment struct {
	ctx            context.Context
	args           []string // the command line, without the program
	stdout, stderr io.Writer
}

// run is the program without the process around it. It returns the exit code,
// one of sysexits.h.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c cli
	exited, code := false, exitOK
	parser, err := newParser(&c, stdout, stderr, func() { exited = true })
	if err != nil {
		fmt.Fprintln(stderr, "spoolfs:", err)
		return exitInternal
	}
	parsed, err := parser.Parse(args)
	if exited { // help
		return exitOK
	}
	if err != nil {
		err = parseError(err)
	} else {
		err = parsed.Run(&environment{ctx, args, stdout, stderr})
	}
	if err != nil {
		if !errors.Is(err, errChecksFailed) { // or it has been told already
			fmt.Fprintln(stderr, "spoolfs:", err)
		}
		code = codeOf(err)
	}
	return code
}

// newParser makes the parser of the command line. Help ends in a call of exit.
func newParser(c *cli, stdout, stderr io.Writer, exit func()) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("spoolfs"),
		kong.Description("Files written into the mount are published to RabbitMQ, whatever the broker is doing meanwhile."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { exit() }),
		kong.DefaultEnvars("SPOOLFS"),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"version": version()},
		kong.TypeMapper(reflect.TypeFor[units.Base2Bytes](), sizeMapper{}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), durationMapper{}),
	)
}

// parseError gives an error of the parser its code, if it has none.
func parseError(err error) error {
	if codeOf(err) != exitInternal {
		return err
	}
	return withCode(exitUsage, fmt.Errorf("%w (--help shows how)", err))
}

// sameSignal is how close a second signal is the same stop once more.
const sameSignal = 250 * time.Millisecond

// signalContext ends with the first SIGTERM or SIGINT. A second one ends the
// process at once: the store is safe at any moment.
func signalContext() (context.Context, context.CancelFunc) {
	// Neither the end of a login nor that of who reads the log ends the spool.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		s := <-signals
		first := time.Now()
		cancel(fmt.Errorf("got %s", s))
		for range signals {
			// timeout(1) and others signal a process and then its group.
			if time.Since(first) > sameSignal {
				break
			}
		}
		fmt.Fprintln(os.Stderr, "spoolfs: second signal: stopped at once. What was closed is safe in the store; the mount is left dead, and the next start replaces it")
		os.Exit(exitTemporary)
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// The exit codes, of sysexits.h.
const (
	exitOK          = 0
	exitUsage       = 64
	exitUnavailable = 69
	exitInternal    = 70
	exitCannot      = 73 // cannot create
	exitIO          = 74
	exitTemporary   = 75
	exitPermission  = 77
	exitConfig      = 78
)

// codedError is an error with an exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

func withCode(code int, err error) error { return &codedError{code, err} }

func codeOf(err error) int {
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	return exitInternal
}
