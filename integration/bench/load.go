package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// load is what writers are to do, each a process.
type load struct {
	writers int
	files   int // of all together
	records int // of each file; 0 is one
	spread  bool
	synced  bool
}

// outcome is what they did.
type outcome struct {
	took  time.Duration   // from the first file to the end of the last writer
	times []time.Duration // of each file, sorted
	cpu   time.Duration   // of the writers
}

// write has writers write files.
func (b *bench) write(ctx context.Context, dir string, l load) (*outcome, error) {
	begin, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer begin.Close()
	var cmds []*exec.Cmd
	var outputs []*bytes.Buffer
	for w := range l.writers {
		cmd, out := b.writer(ctx, dir, w, l), &bytes.Buffer{}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = begin, out, out
		if err := cmd.Start(); err != nil {
			end.Close()
			return nil, err
		}
		cmds, outputs = append(cmds, cmd), append(outputs, out)
	}
	start := time.Now()
	end.Close() // they begin
	o := &outcome{}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", cmd, err, outputs[i])
		}
		o.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	o.took = time.Since(start)
	for _, out := range outputs {
		if o.times, err = appendTimes(o.times, out.String()); err != nil {
			return nil, err
		}
	}
	slices.Sort(o.times)
	return o, nil
}

// writer is the program of one writer.
func (b *bench) writer(ctx context.Context, dir string, w int, l load) *exec.Cmd {
	files := l.files / l.writers
	if w < l.files%l.writers {
		files++
	}
	if l.spread {
		dir = filepath.Join(dir, fmt.Sprintf("+%d", w%64))
	}
	cmd := exec.CommandContext(ctx, b.programs.writer, dir, strconv.Itoa(files), strconv.Itoa(messageSize), "wait")
	if l.synced {
		cmd.Args = append(cmd.Args, "fsync")
	}
	if l.records > 1 {
		cmd.Args = append(cmd.Args, fmt.Sprint("records=", l.records))
	}
	return cmd
}

// appendTimes adds nanoseconds, a number a line.
func appendTimes(times []time.Duration, text string) ([]time.Duration, error) {
	for _, word := range strings.Fields(text) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("a time is %q", word)
		}
		times = append(times, time.Duration(n))
	}
	return times, nil
}

// quantile is the time that a part of all is not longer than.
func quantile(sorted []time.Duration, part float64) time.Duration {
	return sorted[int(part*float64(len(sorted)-1))]
}
