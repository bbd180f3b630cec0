// Floor is what the benchmark compares spoolfs with, as programs of their own:
//
//	floor null stock DIR          a file system that keeps nothing, on go-fuse's stock server
//	floor null own DIR STORE      one on a loop such as ours, which puts what was written into Pebble, synced
//	floor send URL EXCHANGE MESSAGES BYTES WINDOW    a bare client of the broker
//	floor connect URL CONNECTIONS                    opens connections, and keeps them
//	floor empty URL EXCHANGE MESSAGES WINDOW DIR     a loop that posts the files of a directory and removes them
//
// The file systems say "ready" when they are mounted, and end with SIGTERM. The
// others print how many seconds they took.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: floor null stock DIR | null own DIR STORE | send URL EXCHANGE MESSAGES BYTES WINDOW | empty URL EXCHANGE MESSAGES WINDOW DIR | connect URL CONNECTIONS")

// run is the program without the process around it.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	switch {
	case len(args) == 3 && args[0] == "null" && args[1] == "stock":
		return serveStock(ctx, args[2], stdout)
	case len(args) == 4 && args[0] == "null" && args[1] == "own":
		return serveOwn(ctx, args[2], args[3], stdout)
	case len(args) == 6 && args[0] == "send":
		numbers, err := parse(args[3:])
		if err != nil {
			return err
		}
		return send(args[1], args[2], numbers[0], numbers[1], numbers[2], stdout)
	case len(args) == 3 && args[0] == "connect":
		numbers, err := parse(args[2:])
		if err != nil {
			return err
		}
		return connect(ctx, args[1], numbers[0], stdout)
	case len(args) == 6 && args[0] == "empty":
		numbers, err := parse(args[3:5])
		if err != nil {
			return err
		}
		return empty(ctx, line{url: args[1], exchange: args[2], window: numbers[1]}, args[5], numbers[0], stdout)
	}
	return errUsage
}

func parse(words []string) ([]int, error) {
	var numbers []int
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number from 1 on: %w", w, errUsage)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
