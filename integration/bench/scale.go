package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// world is what package scale is to simulate: see settings there. Times are in
// nanoseconds.
type world struct {
	name                 string
	Seed                 int
	Nodes, Backlog       int
	Outage               time.Duration
	Confirms, Handshakes float64
	RetryMax             time.Duration
	Window               int
	Together             bool
}

// brokerConfirms and brokerHandshakes are what the simulated broker does in a second,
// with all nodes together: of RabbitMQ with small persistent messages, rounded down.
const (
	brokerConfirms   = 10_000
	brokerHandshakes = 300
	outageMessages   = 1_000_000 // of all nodes, in an hour
	realConnections  = 500
)

// worlds are an outage of an hour, with the defaults and with what one might set
// instead. Short runs have a tenth of the nodes, with a tenth of the messages.
func worlds(full bool) []world {
	nodes := []int{100}
	if full {
		nodes = []int{1000, 10_000}
	}
	var all []world
	for _, n := range nodes {
		w := world{Seed: 1, Nodes: n, Outage: time.Hour, Confirms: brokerConfirms, Handshakes: brokerHandshakes, Backlog: outageMessages / n}
		if !full {
			w.Backlog, w.Confirms, w.Handshakes = w.Backlog/10, w.Confirms/10, w.Handshakes/10
		}
		for _, change := range []func(*world){
			func(w *world) { w.name = "defaults" },
			func(w *world) { w.name, w.RetryMax = "backoff_max 5s", 5*time.Second },
			func(w *world) { w.name, w.RetryMax = "backoff_max 2m", 2*time.Minute },
			func(w *world) { w.name, w.Window = "window 64", 64 },
			func(w *world) { w.name, w.Together = "waits without chance", true },
		} {
			changed := w
			change(&changed)
			all = append(all, changed)
		}
	}
	return all
}

// scale simulates many nodes, and measures what a connection costs a real broker.
func scale(ctx context.Context, b *bench) error {
	program := filepath.Join(b.work, "bin", "scale.test")
	if err := compile(ctx, "go", "test", "-c", "-o", program, "spoolfs/integration/bench/scale"); err != nil {
		return err
	}
	for _, w := range worlds(b.opts.full) {
		values, err := simulate(ctx, program, w)
		if err != nil {
			return fmt.Errorf("%d nodes, %s: %w", w.Nodes, w.name, err)
		}
		b.record(sample{"scale", fmt.Sprintf("%d nodes", w.Nodes), w.name, 0, values})
	}
	return b.connections(ctx)
}

// simulate runs a simulation and returns what it found; times are in seconds.
func simulate(ctx context.Context, program string, w world) (map[string]float64, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-test.run=^TestScale_Simulate$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), "SPOOLFS_SCALE="+string(text))
	out, err := cmd.CombinedOutput()
	_, result, found := bytes.Cut(out, []byte("\nresult "))
	if err != nil || !found {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	line, _, _ := bytes.Cut(result, []byte("\n"))
	var r struct {
		PeakConnections, DialsAtLoss, DialsAtEnd, DialsAfter, DialsFailed, PeakUnconfirmed, Repeats float64
		LongestConfirm, Half, All, Ideal                                                            time.Duration
		Fairness                                                                                    float64
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	return map[string]float64{
		peakConnections: r.PeakConnections, dialsAtLoss: r.DialsAtLoss, dialsAtEnd: r.DialsAtEnd, dialsAfter: r.DialsAfter,
		dialsFailed: r.DialsFailed, peakUnconfirmed: r.PeakUnconfirmed, repeats: r.Repeats, fairness: r.Fairness,
		longestConfirm: r.LongestConfirm.Seconds(), halfCaughtUp: r.Half.Seconds(), allCaughtUp: r.All.Seconds(), idealCaughtUp: r.Ideal.Seconds(),
	}, nil
}

// connections measures how fast a real broker accepts connections, and what it takes
// for each.
func (b *bench) connections(ctx context.Context) (err error) {
	q, err := b.queue(ctx)
	if err != nil {
		return err
	}
	before, err := b.brokerMemory(ctx)
	if err != nil {
		return err
	}
	p, err := startProcess(filepath.Join(b.work, "connect.log"), exec.Command(b.programs.floor, "connect", q.URL, strconv.Itoa(realConnections)))
	if err != nil {
		return err
	}
	var took float64
	err = p.until("connected", 5*time.Minute, func() bool {
		var err error
		took, err = strconv.ParseFloat(strings.TrimSpace(p.output()), 64)
		return err == nil
	})
	if err != nil {
		return err
	}
	after, err := b.brokerMemory(ctx)
	if err != nil {
		return err
	}
	b.record(sample{"scale", "a real broker", fmt.Sprintf("%d connections", realConnections), 0, map[string]float64{
		perSecond: realConnections / took, connectionKiB: (after - before) / realConnections / 1024,
	}})
	return p.stop()
}

// brokerMemory is what of the broker is resident, in bytes: erlang:memory counts buffers
// of megabytes for each connection that nothing is in.
func (b *bench) brokerMemory(ctx context.Context) (float64, error) {
	pid, err := b.node.Ctl(ctx, "eval", "[garbage_collect(P) || P <- processes()], list_to_integer(os:getpid()).")
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(pid), "status"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\nVmRSS:")
	var kib float64
	_, err = fmt.Sscan(rest, &kib)
	return kib * 1024, err
}
