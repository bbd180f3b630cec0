// Demo shows what spoolfs is for: programs write small files and go on with
// their lives while RabbitMQ is away, and every message arrives when it is back.
//
// It starts a private RabbitMQ and bin/spoolfs in temporary directories, needs
// nothing but what "make deps" installs, and takes about half a minute. What it
// promises:
//
//  1. It exits 0 only if every message arrived exactly once.
//  2. It leaves nothing behind, also after an error or Ctrl-C: no mount, no
//     process, no directory.
//  3. It does not hang: each wait has a limit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// So that a reader who goes away, as in "demo | head", is an error like
	// others, and we clean up.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program without the process around it. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = play(ctx, opts, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return 1
	}
	return 0
}
