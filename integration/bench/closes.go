package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// closers are the contestants of closes.
var closers = []string{nullStock, nullC, nullOwn, oneProcess, withKeeper, filesSynced, filesPlain}

// closes measures how many files a second are taken, and how long one takes, with
// the broker away.
func closes(ctx context.Context, b *bench) error {
	rounds := b.opts.turns(3, 11)
	all := b.opts.with(closers)
	return inTurns(ctx, rounds, len(all), func(round, i int) error {
		return b.closesOf(ctx, all[i], round)
	})
}

// closesOf measures one contestant with 1, 8 and 32 writers.
func (b *bench) closesOf(ctx context.Context, name string, round int) (err error) {
	s, err := b.openSite(name, deadBroker, "x")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, writers := range []int{1, 8, 32} {
		l := load{writers: writers, files: min(writers, 8) * b.opts.count(500, 1000), synced: name == filesSynced}
		if err := b.closesWith(ctx, s, l, s.name, round); err != nil {
			return err
		}
		if !s.isSpool() {
			continue
		}
		l.spread = true
		if err := b.closesWith(ctx, s, l, s.name+", standing directories", round); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) closesWith(ctx context.Context, s *site, l load, name string, round int) error {
	warm := l
	warm.files = 10 * l.writers
	if _, err := b.write(ctx, s.dir, warm); err != nil {
		return err
	}
	before := s.cpu()
	o, err := b.write(ctx, s.dir, l)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	server := s.cpu() - before
	b.record(sample{"close", writersCase(l.writers), name, round, map[string]float64{
		perSecond: float64(l.files) / o.took.Seconds(),
		medianMS:  milliseconds(quantile(o.times, 0.5)),
		p99MS:     milliseconds(quantile(o.times, 0.99)),
		cpuUS:     microseconds(server+o.cpu) / float64(l.files), serverCPUUS: microseconds(server) / float64(l.files),
	}})
	return nil
}

func writersCase(n int) string {
	if n == 1 {
		return "1 writer"
	}
	return fmt.Sprintf("%d writers", n)
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

func microseconds(d time.Duration) float64 { return d.Seconds() * 1e6 }
