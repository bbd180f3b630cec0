package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"spoolfs/integration/rabbit"
)

// Contestants that publish.
const (
	bareClient  = "bare amqp091-go client"
	loopPlain   = filesPlain + ", and a loop that posts them"
	loopSynced  = filesSynced + ", and a loop that posts them"
	endCase     = "32 writers"
	endWriters  = 32
	usualWindow = 1024 // messages without a confirm
)

// enders are the contestants of endToEnd. The null file systems take the files
// only; they and the bare client are the floors.
var enders = []string{nullStock, nullOwn, bareClient, oneProcess, withKeeper, loopPlain, loopSynced}

// endToEnd measures how long many files take from the first create to the last
// confirm, and the CPU time of it.
func endToEnd(ctx context.Context, b *bench) error {
	files := b.opts.count(8000, 50_000)
	all := b.opts.with(enders)
	return inTurns(ctx, b.opts.turns(3, 7), len(all), func(round, i int) error {
		took, cpu, err := b.end(ctx, all[i], files)
		if err != nil {
			return fmt.Errorf("%s: %w", all[i], err)
		}
		b.record(sample{"end", endCase, all[i], round, map[string]float64{
			perSecond: float64(files) / took.Seconds(), cpuUS: microseconds(cpu) / float64(files),
		}})
		return nil
	})
}

func (b *bench) end(ctx context.Context, name string, files int) (took, cpu time.Duration, err error) {
	q, err := b.queue(ctx)
	if err != nil {
		return 0, 0, err
	}
	switch name {
	case bareClient:
		return b.publish(ctx, "send", q, files, messageSize, usualWindow)
	case loopPlain, loopSynced:
		return b.postFiles(ctx, name, q, files)
	}
	return b.throughMount(ctx, name, q, files)
}

// publish runs a program that publishes and says how long it took.
func (b *bench) publish(ctx context.Context, what string, q rabbit.Queue, words ...any) (took, cpu time.Duration, err error) {
	args := []string{what, q.URL, q.Exchange}
	for _, w := range words {
		args = append(args, fmt.Sprint(w))
	}
	cmd := exec.CommandContext(ctx, b.programs.floor, args...)
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", cmd, err)
	}
	s, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	return time.Duration(s * 1e9), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
}

// postFiles has writers fill a directory and a loop empty it.
func (b *bench) postFiles(ctx context.Context, name string, q rabbit.Queue, files int) (took, cpu time.Duration, err error) {
	dir, err := b.newDir("plain")
	if err != nil {
		return 0, 0, err
	}
	written := make(chan error, 1)
	var o *outcome
	go func() {
		var err error
		o, err = b.write(ctx, dir, load{writers: endWriters, files: files, synced: name == loopSynced})
		written <- err
	}()
	// It connects meanwhile, so that what it says is too little by a moment.
	took, cpu, err = b.publish(ctx, "empty", q, files, usualWindow, dir)
	if err = errors.Join(err, <-written); err != nil {
		return 0, 0, err
	}
	return took, cpu + o.cpu, nil
}

// throughMount writes files; a spool sends them, too.
func (b *bench) throughMount(ctx context.Context, name string, q rabbit.Queue, files int) (took, cpu time.Duration, err error) {
	s, err := b.openSite(name, q.URL, q.Exchange)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	// Until all is warm, and the spool is connected.
	if _, err := b.write(ctx, s.dir, load{writers: endWriters, files: endWriters}); err != nil {
		return 0, 0, err
	}
	if err := s.sent(ctx, endWriters); err != nil {
		return 0, 0, err
	}
	before, start := s.cpu(), time.Now()
	o, err := b.write(ctx, s.dir, load{writers: endWriters, files: files})
	if err == nil {
		err = s.sent(ctx, endWriters+files)
	}
	if err != nil {
		return 0, 0, err
	}
	return time.Since(start), s.cpu() - before + o.cpu, nil
}

// sent waits until a spool has sent so many messages.
func (s *site) sent(ctx context.Context, messages int) error {
	if !s.isSpool() {
		return nil
	}
	return s.awaitConfirmed(ctx, messages)
}
