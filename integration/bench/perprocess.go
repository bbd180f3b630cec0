package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"spoolfs/integration/rabbit"
)

// Contestants of processes.
const (
	justProcess = "a process that does nothing"
	oneFile     = "a process that writes a file into spoolfs"
	onePlain    = "a process that writes a plain file"
	onePost     = "a process that posts to the broker"
	oneCPost    = "sr3_cpost, of Sarracenia"
)

// roundTrips are those to the broker, in milliseconds.
var roundTrips = []int{0, 1, 20}

// processes measures what one message costs a process of its own: a file in the
// mount, or a post. What is far from the broker is behind a relay that delays.
func processes(ctx context.Context, b *bench) (err error) {
	q, err := b.queue(ctx)
	if err != nil {
		return err
	}
	plain, err := b.newDir("plain")
	if err == nil {
		err = os.WriteFile(filepath.Join(plain, "announced"), make([]byte, messageSize), 0o600)
	}
	if err != nil {
		return err
	}
	s, err := b.openSite(withKeeper, q.URL, q.Exchange)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	size := strconv.Itoa(messageSize)
	file := func(dir string) func(string) []string {
		return func(string) []string { return []string{b.programs.writer, dir, "1", size} }
	}
	contestants := []contestant{
		{justProcess, func(string) []string { return []string{"/bin/true"} }},
		{onePlain, file(plain)},
		{oneFile, file(s.dir)},
		{onePost, func(port string) []string { return []string{b.programs.post, port, q.Exchange, size} }},
	}
	if b.opts.cpost != "" {
		contestants = append(contestants, contestant{oneCPost, b.cpost(plain, q.Exchange)})
	}
	for _, rtt := range roundTrips {
		if err := b.processesAt(ctx, rtt, contestants); err != nil {
			return err
		}
	}
	return nil
}

// cpost is the command of sr3_cpost for a file in a directory.
func (b *bench) cpost(dir, exchange string) func(port string) []string {
	return func(port string) []string {
		return []string{
			b.opts.cpost, "-post_broker", "amqp://guest:guest@127.0.0.1:" + port, "-post_exchange", exchange,
			"-post_baseUrl", "file:", "-path", filepath.Join(dir, "announced"),
		}
	}
}

// contestant is a program by the port of the broker.
type contestant struct {
	name    string
	command func(port string) []string
}

// processesAt measures with a broker that is a round trip away.
func (b *bench) processesAt(ctx context.Context, rtt int, contestants []contestant) (err error) {
	relay, err := rabbit.NewRelay(b.node.URL(), rabbit.RelayOptions{Delay: time.Duration(rtt) * time.Millisecond / 2})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, relay.Close()) }()
	address := relay.URL()
	if rtt == 0 {
		address = b.node.URL()
	}
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	return inTurns(ctx, b.opts.turns(3, 10), len(contestants), func(round, i int) error {
		c := contestants[i]
		times, err := b.spawn(ctx, b.opts.count(20, 100), c.command(u.Port()))
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		b.record(sample{"process", rttCase(rtt), c.name, round, map[string]float64{
			medianMS: milliseconds(quantile(times, 0.5)), p99MS: milliseconds(quantile(times, 0.99)),
		}})
		return nil
	})
}

func rttCase(ms int) string { return fmt.Sprintf("%d ms away", ms) }

// spawn runs a program over and over and returns how long it took, sorted.
func (b *bench) spawn(ctx context.Context, times int, command []string) ([]time.Duration, error) {
	cmd := exec.CommandContext(ctx, b.programs.spawn, append([]string{strconv.Itoa(times)}, command...)...)
	cmd.Env = append(os.Environ(), "HOME="+b.work) // where sr3_cpost has its state
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	took, err := appendTimes(nil, string(out))
	slices.Sort(took)
	return took, err
}
