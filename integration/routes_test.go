package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"spoolfs/integration/rabbit"
)

// routeJSON is a route in status.json.
type routeJSON struct {
	State     string
	Directory string
	Queue     struct {
		Ready, Leased, Delayed, Dead, Partial, Staged uint64
		Full                                          bool

		DroppedOldest uint64 `json:"dropped_oldest_total"`
		DroppedNewest uint64 `json:"dropped_newest_total"`
		Coalesced     uint64 `json:"coalesced_total"`
	}
	Publisher struct {
		State          string
		ConfirmedTotal uint64 `json:"confirmed_total"`
		FollowedTotal  uint64 `json:"followed_total"`
	}
}

// waiting is how many messages are not published yet.
func (r routeJSON) waiting() uint64 {
	return r.Queue.Ready + r.Queue.Leased + r.Queue.Delayed + r.Queue.Staged
}

// routes are the routes that the status tells of.
func (s *spool) routes() map[string]routeJSON {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, ".status", "status.json"))
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.stderr)
	}
	var st struct{ Routes map[string]routeJSON }
	if err := json.Unmarshal(text, &st); err != nil {
		s.t.Fatalf("%v in\n%s", err, text)
	}
	return st.Routes
}

// place writes a file in the mount.
func (s *spool) place(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// wantRoutes checks the names and states of the routes.
func (s *spool) wantRoutes(want map[string]string) {
	s.t.Helper()
	got := map[string]string{}
	for name, r := range s.routes() {
		got[name] = r.State
	}
	if !maps.Equal(got, want) {
		s.t.Errorf("routes are %v, want %v", got, want)
	}
}

// readmeRoutes are the example of the README: the configuration, the commands, and what
// arrives.
func readmeRoutes(t testing.TB) (config string, sh, want []string) {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(# /etc/spoolfs/conf.d/routes.yaml\n.*?)```\n\n```\n(.*?)```").FindStringSubmatch(string(text))
	if found == nil {
		t.Fatal("there is no example of routes in the README")
	}
	for _, line := range lines(found[2]) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			sh = append(sh, command)
		} else {
			want = append(want, line)
		}
	}
	return found[1], sh, want
}

// TestRoutes_Readme: what the README shows of routes is what happens, with what follows.
func TestRoutes_Readme(t *testing.T) {
	config, sh, want := readmeRoutes(t)
	if len(want) < 5 || want[0] != "exchange xs_sensors" {
		t.Fatalf("the README says no more than %q", want)
	}
	node := brokerNode(t)
	queues := map[string]rabbit.Queue{}
	for _, name := range []string{"xs_sensors", "xs_public", "xs_alerts"} {
		queues[name] = newQueue(t, node)
		config = strings.ReplaceAll(config, name, queues[name].Exchange)
	}
	config = strings.ReplaceAll(config, "amqps://feeder@remote.example.org/", node.URL())
	s := newConfigured(t, "broker: "+node.URL()+"\nexchange: xs_none\n"+config)
	if got := s.names(); !slices.Equal(got, []string{".status", "alarms", "announce", "sensors"}) {
		t.Errorf("the mount has %q", got)
	}
	s.sh(strings.ReplaceAll(strings.Join(sh, "\n"), "/run/spool", "$M"))
	for name, suffix := range map[string]string{"xs_sensors": "-1", "xs_public": "-1/announce"} {
		got := consume(t, queues[name], 1)[0]
		all := deliveryLines(t, got)
		for _, line := range want[1:] {
			if !slices.Contains(all, line) {
				t.Errorf("%s: want %q among\n%s", name, line, strings.Join(all, "\n"))
			}
		}
		if got.Exchange != queues[name].Exchange || !strings.HasSuffix(got.MessageID, suffix) {
			t.Errorf("%s got message %s from %s", name, got.MessageID, got.Exchange)
		}
	}
	consume(t, queues["xs_alerts"], 0)
}

// TestRoutes_Reload: routes come and go with the configuration. One that is taken out
// while messages wait keeps them, to be seen and adopted, also by a worker that knows
// it from the store alone; the others go on all the while.
func TestRoutes_Reload(t *testing.T) {
	const away = "amqp://127.0.0.1:9/" // nobody answers there
	route := func(name, more string) string {
		return fmt.Sprintf("  %s: {format: raw, routing_key: '%s.${base}', %s}\n", name, name, more)
	}
	const top = "broker: 'stdout:'\nexchange: x\nroutes:\n"
	s := newConfigured(t, top+route("a", "exchange: y")+route("gone", "broker: '"+away+"'"))
	published := func(key string) bool { return strings.Contains(s.stdout.String(), `"routing_key":"`+key+`"`) }
	s.place("f", record("top")+"\n")
	s.place("a/1", "one")
	for i := range 3 {
		s.place(fmt.Sprintf("gone/%d", i), "waits")
	}
	s.until("publishing two routes", func() bool { return published("a.1") && published("v03.d") })
	if got := s.names(); !slices.Equal(got, []string{".status", "a", "gone"}) {
		t.Errorf("the mount has %q", got)
	}
	s.until("done with the files", func() bool { return s.routes()["gone"].waiting() == 3 })
	if text := s.reload(top + route("a", "exchange: z") + route("b", "window: 1")); text != "" {
		t.Errorf("reload: %s", text)
	}
	s.wantRoutes(map[string]string{"default": "active", "a": "active", "b": "active", "gone": "removed"})
	if err := os.WriteFile(filepath.Join(s.dir, "gone", "late"), []byte("x"), 0o644); err == nil {
		t.Error("a route that is gone takes files")
	}
	s.place("b/1", "new")
	s.place("a/2", "two")
	s.until("publishing the new route", func() bool { return published("b.1") && published("a.2") })
	if text := s.stdout.String(); !strings.Contains(text, `"exchange":"z","routing_key":"a.2"`) {
		t.Errorf("the exchange of a route has not changed:\n%s", text)
	}
	worker := s.daemonPID()
	if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until("served by the next worker", func() bool { return s.status().Keeper.WorkerPID != worker })
	s.wantRoutes(map[string]string{"default": "active", "a": "active", "b": "active", "gone": "removed"})
	pending, err := os.ReadDir(filepath.Join(s.dir, ".status", "routes", "gone", "pending"))
	if err != nil || len(pending) != 3 {
		t.Errorf("%d messages can be seen, %v", len(pending), err)
	}
	if text := s.summary(); !strings.Contains(text, "route-removed: route gone is not in the configuration, and holds messages: 3") {
		t.Errorf("the summary does not tell of it:\n%s", text)
	}
	if text := s.reload(top + route("a", "exchange: z") + route("renamed", "was: gone")); text != "" {
		t.Errorf("reload: %s", text)
	}
	s.until("publishing what was adopted", func() bool { return s.routes()["renamed"].Publisher.ConfirmedTotal == 3 })
	for i := range 3 {
		if !published(fmt.Sprintf("gone.%d", i)) { // the key is of the content
			t.Errorf("message %d has not come", i)
		}
	}
	s.wantRoutes(map[string]string{"default": "active", "a": "active", "renamed": "active"})
}
