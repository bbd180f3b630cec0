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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program without the process around it. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return 64
	case opts.readme != "":
		err = updateReadme(opts.readme, opts.out)
	default:
		err = measure(ctx, opts, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

// measure runs the scenarios and writes what they found.
func measure(ctx context.Context, opts options, stdout io.Writer) (err error) {
	b, err := newBench(ctx, opts, stdout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, s := range scenarios {
		if !opts.wants(s.name) {
			continue
		}
		fmt.Fprintf(stdout, "%s: %s\n", s.name, s.about)
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		// What is measured already is kept if a later scenario fails.
		if err := b.report.save(opts.out); err != nil {
			return err
		}
	}
	b.report.print(stdout)
	return b.report.draw(opts.out)
}
