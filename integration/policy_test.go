package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"spoolfs/integration/rabbit"
)

// amqpLines is a file of the format amqp with messages of these bodies.
func amqpLines(bodies ...string) string {
	var text strings.Builder
	for _, body := range bodies {
		fmt.Fprintf(&text, "{\"routing_key\": \"k\", \"body\": %q}\n", body)
	}
	return text.String()
}

// TestRoutes_Policies: what waits in routes whose broker is away goes out in the order of
// each, and there is as much of it as each may hold: of the others the first writer is
// refused, or the old or the new ones are dropped and counted.
func TestRoutes_Policies(t *testing.T) {
	node := brokerNode(t)
	names := []string{"newest", "oldest-go", "young-go", "refuses"}
	policies := []string{"order: newest-first", "on_full: drop-oldest, route_messages: 3", "on_full: drop-newest, route_messages: 3", "route_messages: 3"}
	queues := map[string]rabbit.Queue{}
	config := "exchange: x\nroutes:\n"
	for i, name := range names {
		queues[name] = newQueue(t, node)
		config += fmt.Sprintf("  %s: {format: amqp, exchange: %s, %s}\n", name, queues[name].Exchange, policies[i])
	}
	s := newConfigured(t, "broker: amqp://127.0.0.1:9/\n"+config) // nobody answers there
	// What the broker is tried with is leased for a moment, and is not dropped then.
	s.control("pause")
	s.until("paused", func() bool {
		return !slices.ContainsFunc(names, func(name string) bool { return s.routes()[name].Publisher.State != "paused" })
	})
	for i := range 5 {
		one := amqpLines(fmt.Sprint(i))
		s.place(fmt.Sprintf("newest/%d", i), amqpLines(fmt.Sprintf("%d.1", i), fmt.Sprintf("%d.2", i)))
		s.place(fmt.Sprintf("oldest-go/%d", i), one)
		s.place(fmt.Sprintf("young-go/%d", i), one)
		err := os.WriteFile(filepath.Join(s.dir, "refuses", fmt.Sprint(i)), []byte(one), 0o644)
		if full := errors.Is(err, syscall.ENOSPC); full != (i >= 3) || err != nil && !full {
			t.Errorf("file %d: %v", i, err)
		}
		// One after the other, as a close returns before the file is released.
		s.until("done with the files", func() bool { return isSettled(s.routes(), uint64(i+1)) })
	}
	for name, r := range s.routes() {
		if full := name == "refuses"; r.Queue.Full != full {
			t.Errorf("%s is said to be full: %t", name, r.Queue.Full)
		}
	}
	if text := s.summary(); !strings.Contains(text, "route-full: route refuses is full with 3 messages") {
		t.Errorf("the summary does not tell who is refused:\n%s", text)
	}
	if text := s.reload("broker: " + node.URL() + "\n" + config); text != "" {
		t.Errorf("reload: %s", text)
	}
	s.control("resume")
	for name, want := range map[string][]string{
		"newest":    {"4.1", "4.2", "3.1", "3.2", "2.1", "2.2", "1.1", "1.2", "0.1", "0.2"},
		"oldest-go": {"2", "3", "4"},
		"young-go":  {"0", "1", "2"},
		"refuses":   {"0", "1", "2"},
	} {
		var got []string
		for _, d := range consume(t, queues[name], len(want)) {
			got = append(got, string(d.Body))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s got %q, want %q", name, got, want)
		}
	}
	metrics, err := os.ReadFile(filepath.Join(s.dir, ".status", "metrics"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`spoolfs_dropped_messages_total{policy="drop-oldest",route="oldest-go"} 2`,
		`spoolfs_dropped_messages_total{policy="drop-newest",route="young-go"} 2`,
		`spoolfs_dropped_messages_total{policy="drop-oldest",route="newest"} 0`,
	} {
		if !strings.Contains(string(metrics), want+"\n") {
			t.Errorf("want %q among\n%s", want, metrics)
		}
	}
}

// control writes a command to the mount.
func (s *spool) control(command string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, ".status", "ctl"), []byte(command+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// isSettled reports whether n files of each route wait or are dropped.
func isSettled(all map[string]routeJSON, n uint64) bool {
	drops := func(name string) uint64 {
		q := all[name].Queue
		return q.Ready + q.Leased + q.DroppedOldest + q.DroppedNewest
	}
	newest := all["newest"].Queue
	return newest.Ready+newest.Leased == 2*n && drops("oldest-go") == n && drops("young-go") == n &&
		drops("refuses") == min(n, 3)
}
