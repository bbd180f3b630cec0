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
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/alecthomas/units"

	"spoolfs/fs/ingest"
	"spoolfs/fs/keeper"
)

func main() {
	args := hidePasswords(os.Args)[1:]
	// Where /proc says no, they stay to be seen by this user and root.
	_ = hideEnvironment()
	if len(args) > 0 && args[0] == "worker" {
		// Its keeper decides about these.
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR2)
	}
	ctx, cancel := signalContext()
	defer cancel()
	env, err := processEnvironment(ctx, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "spoolfs:", err)
		os.Exit(exitInternal)
	}
	if isMountHelper(os.Args[0]) && env.baton == nil {
		os.Exit(runMountHelper(env))
	}
	os.Exit(run(env))
}

// environment is what the commands get besides their flags.
type environment struct {
	ctx            context.Context
	args           []string // the command line, without the program
	stdout, stderr io.Writer

	manager *keeper.Manager // the service manager, nil if there is none
	left    *left           // what a former keeper has left, nil if nothing
	baton   *baton          // with how to go on, nil if it is not from one before us
	worker  *worker         // nil if we are none
}

// run is the program without the process around it. It returns the exit code,
// one of sysexits.h.
func run(env *environment) int {
	var c cli
	stdout, stderr := env.stdout, env.stderr
	exited, code := false, exitOK
	parser, err := newParser(&c, stdout, stderr, func() { exited = true })
	if err != nil {
		fmt.Fprintln(stderr, "spoolfs:", err)
		return exitInternal
	}
	parsed, err := parser.Parse(env.args)
	if exited { // help
		return exitOK
	}
	if err != nil {
		err = parseError(err)
	} else {
		err = parsed.Run(env)
	}
	if err != nil {
		code = complain(stderr, err)
	}
	return code
}

// newParser makes the parser of the command line. Help ends in a call of exit.
func newParser(c *cli, stdout, stderr io.Writer, exit func()) (*kong.Kong, error) {
	return kong.New(c, append(valueOptions(),
		kong.Name("spoolfs"),
		kong.Description("Files written into the mount are published to RabbitMQ, whatever the broker is doing meanwhile."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { exit() }),
		kong.DefaultEnvars("SPOOLFS"),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ExplicitGroups(commandGroups()),
	)...)
}

// valueOptions are what kong has to know to read values and defaults.
func valueOptions() []kong.Option {
	return []kong.Option{
		kong.Vars{"version": version(), "formats": strings.Join(ingest.Names(), ",")},
		kong.TypeMapper(reflect.TypeFor[units.Base2Bytes](), sizeMapper{}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), durationMapper{}),
	}
}

// parseError gives an error of the parser its code, if it has none.
func parseError(err error) error {
	if codeOf(err) != exitInternal {
		return err
	}
	return withCode(exitUsage, fmt.Errorf("%w (--help shows how)", err))
}

// complain tells an error and returns its exit code.
func complain(stderr io.Writer, err error) int {
	var status exitStatus
	var file *os.PathError
	switch {
	case errors.As(err, &status):
		return int(status)
	case errors.Is(err, syscall.EPIPE) && errors.As(err, &file) && file.Path == os.Stdout.Name():
		return exitOK // who read our output has enough
	case errors.Is(err, errChecksFailed): // and it has been told why
		return codeOf(err)
	}
	fmt.Fprintln(stderr, "spoolfs:", hidingPasswords(err.Error()))
	return codeOf(err)
}

// sameSignal is how close a second signal is the same stop once more.
const sameSignal = 250 * time.Millisecond

// signalContext ends with the first SIGTERM or SIGINT. A second one ends the
// process at once: the store is safe at any moment.
func signalContext() (context.Context, context.CancelFunc) {
	// Neither the end of a login nor that of who reads the log ends the spool.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(context.Background())
	if signal.Ignored(syscall.SIGTERM) {
		return ctx, func() { cancel(nil) }
	}
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
	exitData        = 65
	exitUnavailable = 69
	exitInternal    = 70
	exitCannot      = 73 // cannot create
	exitIO          = 74
	exitTemporary   = 75
	exitPermission  = 77
	exitConfig      = 78
)

// exitStatus is an exit code of which all has been said.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

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
