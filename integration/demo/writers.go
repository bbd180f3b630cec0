package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"
)

// writers are processes that write at the same time.
type writers struct {
	all  []*writer
	gate *os.File // open: all wait
}

// startWriters starts a writer for each job. They wait for write.
func startWriters(jobs []job) (_ *writers, err error) {
	waiting, gate, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer waiting.Close()
	ws := &writers{gate: gate}
	for _, j := range jobs {
		w, err := startWriter(j, waiting)
		if err != nil {
			return ws, err
		}
		ws.all = append(ws.all, w)
	}
	return ws, nil
}

// await waits until all have begun.
func (ws *writers) await(ctx context.Context) error {
	for _, w := range ws.all {
		select {
		case <-w.out.done:
		case <-w.Done():
			return errors.Join(errors.New("a writer ended before its time"), w.complaint())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// write lets all go at once and waits for their ends. It returns how long the
// whole took, and each file of the python ones, in order of length.
func (ws *writers) write(ctx context.Context) (took time.Duration, times []time.Duration, err error) {
	began := time.Now()
	if err := ws.gate.Close(); err != nil {
		return 0, nil, err
	}
	for _, w := range ws.all {
		select {
		case <-w.Done():
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
	took = time.Since(began)
	for _, w := range ws.all {
		of, e := w.times()
		times = append(times, of...)
		err = errors.Join(err, w.complaint(), e)
	}
	slices.Sort(times)
	return took, times, err
}

// kill ends those that have not ended. It does not wait for them.
func (ws *writers) kill() {
	if ws == nil {
		return
	}
	for _, w := range ws.all {
		w.KillGroup()
	}
	ws.gate.Close()
}

// wait waits for all.
func (ws *writers) wait() {
	if ws == nil {
		return
	}
	for _, w := range ws.all {
		<-w.Done()
	}
}
