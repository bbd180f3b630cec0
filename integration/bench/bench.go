package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"spoolfs/integration/rabbit"
)

// bench is a run: programs, a place for files, a broker when one is needed, and
// what was measured.
type bench struct {
	opts     options
	programs *programs
	work     string // directory, gone at the end
	node     *rabbit.Node
	report   *report
	stdout   io.Writer
	made     int // directories and names
}

func newBench(ctx context.Context, opts options, stdout io.Writer) (*bench, error) {
	if err := os.MkdirAll(opts.out, 0o755); err != nil {
		return nil, err
	}
	out, err := filepath.Abs(opts.out)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(out, "work-")
	if err != nil {
		return nil, err
	}
	b := &bench{opts: opts, work: work, stdout: stdout}
	if b.programs, err = build(ctx, filepath.Join(work, "bin")); err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.report = newReport(opts)
	return b, nil
}

// close leaves nothing but the results.
func (b *bench) close() error {
	var err error
	if b.node != nil {
		err = b.node.Close()
	}
	return errors.Join(err, os.RemoveAll(b.work))
}

// newDir makes a directory.
func (b *bench) newDir(name string) (string, error) {
	b.made++
	dir := filepath.Join(b.work, fmt.Sprintf("%s-%d", name, b.made))
	return dir, os.Mkdir(dir, 0o755)
}

// queue makes an exchange with a queue that keeps the last 1,000 messages, so
// that the broker has the same to do however many come.
func (b *bench) queue(ctx context.Context) (rabbit.Queue, error) {
	if b.node == nil {
		node, err := rabbit.Start(ctx, rabbit.Options{})
		if err != nil {
			return rabbit.Queue{}, fmt.Errorf("start RabbitMQ: %w", err)
		}
		b.node = node
	}
	b.made++
	name := fmt.Sprintf("xs_bench_%d", b.made)
	q := rabbit.Queue{URL: b.node.URL(), Name: name, Exchange: name, Arguments: map[string]any{"x-max-length": 1000}}
	return q, q.Declare(ctx)
}

// record keeps what was measured, and shows it.
func (b *bench) record(s sample) {
	b.report.Samples = append(b.report.Samples, s)
	fmt.Fprintf(b.stdout, "  %s\n", s)
}
