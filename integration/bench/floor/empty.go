package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// pause is how long the loop sleeps when it finds nothing.
const pause = 10 * time.Millisecond

// empty posts the files of a directory and removes each when it is confirmed,
// until so many are gone. It is what a site would write in an afternoon: it
// takes it on trust that a file is finished.
func empty(ctx context.Context, l line, dir string, files int, stdout io.Writer) error {
	if err := l.open(); err != nil {
		return err
	}
	start := time.Now()
	for gone := 0; gone < files; {
		n, err := l.pass(dir)
		if err != nil {
			return err
		}
		gone += n
		if n > 0 {
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	fmt.Fprintln(stdout, time.Since(start).Seconds())
	return l.close()
}

// pass posts what is there now.
func (l *line) pass(dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	paths := make(map[uint64]string) // by delivery tag
	remove := func(tag uint64) error {
		path := paths[tag]
		delete(paths, tag)
		return os.Remove(path)
	}
	posted := 0
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		body, err := os.ReadFile(path)
		if err != nil {
			return posted, fmt.Errorf("take %q: %w", path, err)
		}
		if len(body) == 0 || body[len(body)-1] != '\n' {
			continue // still being written
		}
		paths[l.channel.GetNextPublishSeqNo()] = path
		if err := l.publish(body, remove); err != nil {
			return posted, err
		}
		posted++
	}
	return posted, l.settle(remove)
}
