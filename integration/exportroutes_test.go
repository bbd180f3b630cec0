package integration

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spoolfs/queue"
)

// routedStates are how many messages fillRoutes puts into each route. A start makes
// ready what is delayed in a route of the configuration.
var routedStates = map[string]int{"ready": 600, "delayed": 5, "dead": 300, "partial": 3}

// fillRoutes stores messages in all states in each of some routes, before the program
// starts. What is delayed waits for an hour.
func (s *spool) fillRoutes(names ...string) {
	s.t.Helper()
	q, _, err := queue.Open(s.store, queue.Options{Logger: slog.New(slog.DiscardHandler), Limits: queue.Limits{UserShare: 1}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer q.Close()
	for _, name := range names {
		r, err := q.Route(name)
		if err != nil {
			s.t.Fatal(err)
		}
		fillRoute(s.t, r)
	}
}

func fillRoute(t testing.TB, r *queue.Route) {
	t.Helper()
	add := func(count int, reason string, partial bool) {
		ms := someMessages(count, reason)
		for i := range ms {
			ms[i].File, ms[i].Partial = r.Name(), partial
		}
		if err := r.Append(ms); err != nil {
			t.Fatal(err)
		}
	}
	add(routedStates["delayed"], "", false)
	leases, err := r.Lease(context.Background(), routedStates["delayed"])
	if err != nil || len(leases) != routedStates["delayed"] {
		t.Fatalf("%d leases, %v", len(leases), err)
	}
	for _, l := range leases {
		if err := r.Nack(l, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	add(routedStates["ready"], "", false)
	add(routedStates["dead"], "refused-by-broker: no", false)
	add(routedStates["partial"], "torn-last-line", true)
}

// bundledLines are the lines of a bundle without its head, sorted, and how many
// there are of each route and state. All that waits is called ready in the lines:
// what was delayed is so where it was imported, and may be delayed once more when
// the daemon was killed.
func bundledLines(t *testing.T, path string) (all []string, counts map[string]int) {
	t.Helper()
	counts = map[string]int{}
	for _, line := range lines(bundleBody(t, path)) {
		var m struct{ Route, State string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		counts[m.Route+" "+m.State]++
		all = append(all, strings.Replace(line, `"state":"delayed"`, `"state":"ready"`, 1))
	}
	slices.Sort(all)
	return all, counts
}

// wantSameLines compares sorted lines, and shows the first difference.
func wantSameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("%s has %d lines, want %d; they differ from line %d on", what, len(got), len(want), i)
			t.Logf("got %q, want %q", got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
			return
		}
	}
}

// exported exports, and returns the bundle.
func exported(t *testing.T, args ...string) (path, said string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "bundle")
	code, said := runToFile(t, path, append([]string{"export"}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	return path, said
}

// wantHeld checks what the routes hold, whether they are in the configuration or not.
func (s *spool) wantHeld(names ...string) {
	s.t.Helper()
	got := s.routes()
	for _, name := range names {
		q := got[name].Queue
		waiting, want := int(q.Ready+q.Leased+q.Delayed), routedStates["ready"]+routedStates["delayed"]
		if waiting != want || int(q.Dead) != routedStates["dead"] || int(q.Partial) != routedStates["partial"] {
			s.t.Errorf("route %s (%s) holds %+v, want %d that wait, %d dead and %d partial", name, got[name].State, q, want, routedStates["dead"], routedStates["partial"])
		}
	}
}

// TestExport_LiveRoutes: a running daemon exports what all its routes hold, also one
// that was taken out of the configuration, in all states: the same as its store does
// when it has ended. A daemon with the same routes has it in them then, and so has
// one without them: it keeps what it does not know, says so, and publishes it when
// the routes are there.
func TestExport_LiveRoutes(t *testing.T) {
	names := []string{"default", "a", "b.c", "gone"}
	const top = "exchange: x\nbroker: '" + deadBroker + "'\n"
	const routes = "routes:\n  a: {format: raw, routing_key: k}\n  b.c: {exchange: y}\n"
	s := prepareConfigured(t, top+routes)
	s.fillRoutes(names...)
	s.start()
	s.wantHeld(names...)
	s.until("done with what was delayed", func() bool { return s.status().Queue.Delayed == uint64(routedStates["delayed"]) })
	succeed(t, "pause", s.dir)
	bundle, said := exported(t, s.dir)
	if said != "" {
		t.Errorf("of a daemon that is paused it says %q", said)
	}
	was, counts := bundledLines(t, bundle)
	want := map[string]int{}
	for _, name := range names {
		maps.Copy(want, map[string]int{
			name + " ready": routedStates["ready"] + routedStates["delayed"], name + " dead": routedStates["dead"], name + " partial": routedStates["partial"],
		})
	}
	want["gone ready"], want["gone delayed"] = routedStates["ready"], routedStates["delayed"]
	if !maps.Equal(counts, want) {
		t.Errorf("the bundle has %v, want %v", counts, want)
	}
	s.kill()
	stored, _ := exported(t, "--store", s.store)
	offline, _ := bundledLines(t, stored)
	wantSameLines(t, "the bundle of the store", offline, was)

	for what, config := range map[string]string{"the same routes": top + routes, "no routes": top} {
		t.Run(what, func(t *testing.T) {
			c := newConfigured(t, config)
			for range 2 {
				succeed(t, "import", bundle, c.dir)
			}
			c.wantHeld(names...)
			kept := strings.Count(c.stderr.String(), "are kept in it")
			if want := map[bool]int{true: 1, false: 3}[config != top]; kept != want {
				t.Errorf("says of %d routes that they are not in the configuration, want %d\n%s", kept, want, c.stderr)
			}
			again, _ := exported(t, c.dir)
			got, _ := bundledLines(t, again)
			wantSameLines(t, "what was imported", got, was)
			more := strings.ReplaceAll(top+routes, deadBroker, "stdout:") + "  gone: {exchange: z}\n"
			if text := c.reload(more); text != "" {
				t.Fatal(text)
			}
			sent := uint64(routedStates["ready"] + routedStates["delayed"])
			c.until("done with publishing", func() bool {
				return !slices.ContainsFunc(names, func(name string) bool { return c.routes()[name].Publisher.ConfirmedTotal != sent })
			})
		})
	}
}
