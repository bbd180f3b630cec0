package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "embed"
)

//go:embed writer.sh
var bashProgram string

//go:embed writer.py
var pythonProgram string

// job is what one writer has to do.
type job struct {
	dir    string
	writer int
	first  int // number of its first file
	count  int
}

// relPath is what names a file's message.
func (j job) relPath(n int) string { return fmt.Sprintf("run/%03d/f%05d.grib2", j.writer, n) }

// A writer is a process that writes files, each with one message.
type writer struct {
	*child
	python bool
	out    firstWrite
	errors bytes.Buffer // valid after done
}

// startWriter starts the process, which waits for the end of its standard
// input before it writes. Even writers are bash, odd ones python.
func startWriter(j job, gate *os.File) (*writer, error) {
	w := &writer{python: j.writer%2 == 1, out: firstWrite{done: make(chan struct{})}}
	cmd := exec.Command("bash", "-c", bashProgram, "writer")
	if w.python {
		cmd = exec.Command("python3", "-c", pythonProgram)
	}
	cmd.Args = append(cmd.Args, j.dir, strconv.Itoa(j.writer), strconv.Itoa(j.first), strconv.Itoa(j.count))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = gate, &w.out, &w.errors
	var err error
	if w.child, err = startChild(cmd, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Args[0], err)
	}
	return w, nil
}

// times is how long each file took, if the writer is python.
func (w *writer) times() ([]time.Duration, error) {
	if !w.python {
		return nil, nil
	}
	var times []time.Duration
	_, line, _ := strings.Cut(w.out.buf.String(), "\n")
	for _, field := range strings.Fields(line) {
		seconds, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, fmt.Errorf("read the times of a python writer: %w", err)
		}
		times = append(times, time.Duration(seconds*float64(time.Second)))
	}
	return times, nil
}

// complaint is what the writer ended with.
func (w *writer) complaint() error {
	err := w.Err()
	if err == nil {
		return nil
	}
	return fmt.Errorf("writer %s %d: %w: %s", w.Args[0], w.Cmd.Process.Pid, err, strings.TrimSpace(w.errors.String()))
}

// firstWrite is a buffer that tells when it is written to for the first time.
type firstWrite struct {
	once sync.Once
	done chan struct{}
	buf  bytes.Buffer
}

func (f *firstWrite) Write(p []byte) (int, error) {
	defer f.once.Do(func() { close(f.done) })
	return f.buf.Write(p)
}
