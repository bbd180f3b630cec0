package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
)

// configured is a spool whose settings are in a file.
type configured struct {
	*spool
	file  string
	loads int // that were tried
}

// newConfigured prepares a spool with a configuration, and starts it.
func newConfigured(t testing.TB, config string, args ...string) *configured {
	t.Helper()
	c := prepareConfigured(t, config, args...)
	c.start()
	return c
}

// prepareConfigured prepares a spool with a configuration, and does not start it.
func prepareConfigured(t testing.TB, config string, args ...string) *configured {
	t.Helper()
	s := newSpool(t, raceBinary, "")
	c := &configured{spool: s, file: filepath.Join(filepath.Dir(s.dir), "spoolfs.yaml")}
	c.put(config)
	s.args = append([]string{"--config", c.file, "--store", s.store}, args...)
	return c
}

// put writes the configuration.
func (c *configured) put(config string) {
	c.t.Helper()
	if err := os.WriteFile(c.file, []byte(config), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// reload writes the configuration, and has it reloaded. It returns the error that
// the status shows then.
func (c *configured) reload(config string) string {
	c.t.Helper()
	c.put(config)
	c.loads++
	c.signal(syscall.SIGHUP)
	said := func() int {
		return strings.Count(c.stderr.String(), "msg=\"reloaded the configuration\"") + strings.Count(c.stderr.String(), "msg=\"reload: the new configuration is wrong")
	}
	c.until("done with the reload", func() bool { return said() >= c.loads })
	text, err := os.ReadFile(filepath.Join(c.dir, ".status", "status.json"))
	if err != nil {
		c.t.Fatal(err)
	}
	var st struct {
		ConfigError string `json:"config_error"`
	}
	if err := json.Unmarshal(text, &st); err != nil {
		c.t.Fatal(err)
	}
	return st.ConfigError
}

// TestReload_UnderLoad: exchange, broker and limits change by SIGHUP while
// messages flow, with a wrong file in between. Nothing is lost, nothing is
// repeated, and each exchange gets its messages in order.
func TestReload_UnderLoad(t *testing.T) {
	node := brokerNode(t)
	queues := []rabbit.Queue{newQueue(t, node), newQueue(t, node)}
	relay, err := rabbit.NewRelay(node.URL(), rabbit.RelayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	config := func(round int) string {
		broker := []string{node.URL(), relay.URL()}[round/2%2]
		return fmt.Sprintf("broker: %s\nexchange: %s\nwindow: %d\nopen_limit: %d\n", broker, queues[round%2].Exchange, 16<<(round%4), 1000+round)
	}
	s := newConfigured(t, config(0))
	w := startWriters(t, s.dir, 4, 100, false)
	for round := 1; round <= 10; round++ {
		before := s.status().Publisher.ConfirmedTotal
		s.until("publishing", func() bool { return s.status().Publisher.ConfirmedTotal > before+20 })
		if text := s.reload(config(round)); text != "" {
			t.Errorf("round %d: %s", round, text)
		}
		if round == 5 {
			if text := s.reload(config(round) + "windw: 5\n"); !strings.Contains(text, `spoolfs.yaml:5: unknown key "windw", did you mean "window"?`) {
				t.Errorf("a wrong file: %q", text)
			}
		}
	}
	reports := w.finish()
	s.untilClosed()
	s.untilSent()
	if relay.Accepted() == 0 {
		t.Error("nothing went by way of the other broker")
	}
	checkSplit(t, s.spool, reports, queues)
}

// checkSplit checks that each message has arrived once, in one of the queues, and
// in each of these in order but for those that the daemon counts as late.
func checkSplit(t testing.TB, s *spool, reports []writerReport, queues []rabbit.Queue) {
	t.Helper()
	times := map[string]int{}
	total, late := 0, s.status().Queue.Late
	for _, q := range queues {
		got, err := q.Drain(limit(t, time.Minute))
		if err != nil || len(got) == 0 {
			t.Fatalf("%d messages in %s: %v", len(got), q.Name, err)
		}
		total += len(got)
		last := map[string]string{}
		for _, d := range got {
			var m struct{ RelPath string }
			if err := json.Unmarshal(d.Body, &m); err != nil {
				t.Fatal(err)
			}
			if writer, _, _ := strings.Cut(m.RelPath, "/"); times[m.RelPath] == 0 {
				switch before := last[writer]; {
				case m.RelPath >= before:
				case late > 0:
					late--
				default:
					t.Errorf("%s came before %s", before, m.RelPath)
				}
				last[writer] = m.RelPath
			}
			times[m.RelPath]++
		}
	}
	for writer, r := range reports {
		for file, attempt := range r.Accepted {
			if path := attemptPath(writer, file, attempt); times[path] == 0 {
				t.Errorf("%s is lost", path)
			}
		}
	}
	// A machine that stands still for seconds may make a repeat of what was in
	// flight; then it is counted.
	if repeats, counted := total-len(times), s.link().RequeuedTotal; repeats > int(counted) {
		t.Errorf("%d messages were repeated, and %d are counted", repeats, counted)
	} else {
		t.Logf("%d messages, %d repeats", len(times), repeats)
	}
}

// TestReload_BadFile: a file that is wrong changes nothing, and is told in the
// log, the events and the status until a right one comes.
func TestReload_BadFile(t *testing.T) {
	s := newConfigured(t, "broker: 'stdout:'\nexchange: one\n")
	for _, bad := range []string{"exchange: [", "broker: 'stdout:'\nexchange: two\nttl: -1s\n", "broker: http://s3cret@x\nexchange: two\n"} {
		text := s.reload(bad)
		events, err := os.ReadFile(filepath.Join(s.dir, ".status", "events"))
		if err != nil || text == "" || strings.Contains(string(events), "s3cret") || !strings.Contains(string(events), "spoolfs.yaml:") {
			t.Errorf("%v, %q, the events are\n%s", err, text, events)
		}
		if !strings.Contains(s.summary(), "the last reload has failed") {
			t.Errorf("the summary is\n%s", s.summary())
		}
	}
	s.write("a")
	s.until("sent", func() bool { return len(s.published()) == 1 })
	if text := s.reload("broker: 'stdout:'\nexchange: two\n"); text != "" || strings.Contains(s.summary(), "the last reload has failed") {
		t.Errorf("a right file: %q\n%s", text, s.summary())
	}
	s.write("b")
	s.until("sent", func() bool { return len(s.published()) == 2 })
	if out := lines(s.stdout.String()); !strings.Contains(out[0], `"exchange":"one"`) || !strings.Contains(out[1], `"exchange":"two"`) {
		t.Errorf("published %v", out)
	}
}

// TestReload_WorkerDies proves G10: a worker that takes over has the settings of
// the one before, whatever stands in the files by then, and also those of a reload.
func TestReload_WorkerDies(t *testing.T) {
	s := newConfigured(t, "broker: 'stdout:'\nexchange: one\n")
	if text := s.reload("broker: 'stdout:'\nexchange: two\n"); text != "" {
		t.Fatal(text)
	}
	first := s.status().Keeper.WorkerPID
	s.put("nonsense: [\nstore: " + t.TempDir() + "\n")
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.write("a") // waits for the next worker
	s.until("sent", func() bool { return len(s.published()) == 1 })
	if now := s.status().Keeper.WorkerPID; now == first {
		t.Errorf("the worker is %d, as before", now)
	}
	if out := lines(s.stdout.String()); !strings.Contains(out[0], `"exchange":"two"`) {
		t.Errorf("published %v", out)
	}
	if text := s.reload("broker: 'stdout:'\nexchange: three\n"); text != "" {
		t.Error(text)
	}
	s.write("b")
	s.until("sent", func() bool { return len(s.published()) == 2 })
	if out := lines(s.stdout.String()); !strings.Contains(out[1], `"exchange":"three"`) {
		t.Errorf("published %v", out)
	}
}

// TestReload_Limits: limits, the level of the log, the topic prefix and the group
// of operators change; what cannot change stays, and is told.
func TestReload_Limits(t *testing.T) {
	const base = "broker: amqp://u:pw@127.0.0.1:1/\nexchange: x\n"
	s := newConfigured(t, base+"max_messages: 2\nfile_limit: 1KiB\nmessage_limit: 1KiB\n")
	write := func(name string, size int) error {
		return os.WriteFile(filepath.Join(s.dir, name), []byte(fmt.Sprintf(`{"pubTime": "20261130T070000", "baseUrl": "http://h", "relPath": "%s", "x": "%*s"}`+"\n", name, size, "")), 0o600)
	}
	config := func() string {
		text, err := os.ReadFile(filepath.Join(s.dir, ".status", "config"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, name := range []string{"a", "b"} {
		if err := write(name, 10); err != nil {
			t.Fatal(err)
		}
	}
	s.untilIngested(2)
	if err := write("c", 10); err == nil {
		t.Error("a third message was taken")
	}
	if text := s.reload(base + "max_messages: 10\nlog_level: debug\nfile_limit: 1KiB\nmessage_limit: 1KiB\n"); text != "" {
		t.Fatal(text)
	}
	if err := write("c", 10); err != nil {
		t.Errorf("after more messages are allowed: %v", err)
	}
	if err := write("d", 4096); err == nil {
		t.Error("a large file was taken")
	}
	if text := s.reload(base + "max_messages: 10\nformat: raw\nrouting_key: k\nlisten: 127.0.0.1:1\nttl: 1h\n"); text != "" {
		t.Fatal(text)
	}
	if err := write("d", 4096); err != nil {
		t.Errorf("after larger files are allowed: %v", err)
	}
	if log := s.stderr.String(); !strings.Contains(log, `settings="format routing_key listen"`) {
		t.Errorf("the log does not say what needs a restart:\n%s", log)
	}
	for _, want := range []string{"format sarracenia\n", "listen \n", "ttl 1h0m0s\n", "ttl.from " + s.file + ":7\n", "max_messages 10\n"} {
		if !strings.Contains("\n"+config(), "\n"+want) {
			t.Errorf("no %q in\n%s", want, config())
		}
	}
	if st := s.status(); st.Queue.Ready+st.Queue.Leased != 4 {
		t.Errorf("the queue is %+v", st.Queue)
	}
}

// TestReload_Backlog: a corrected configuration applies to what waits, at once
// (DESIGN: what depends on configuration is decided at publishing).
func TestReload_Backlog(t *testing.T) {
	node := brokerNode(t)
	q, other := newQueue(t, node), newQueue(t, node)
	config := func(exchange string, more ...string) string {
		return fmt.Sprintf("broker: %s\nexchange: %s\n%s", node.URL(), exchange, strings.Join(more, ""))
	}
	s := newConfigured(t, config(q.Exchange))
	text := strings.TrimSuffix(record("named"), "}") + fmt.Sprintf(`, "post_exchange": %q}`, other.Exchange)
	s.sh(fmt.Sprintf(`echo '%s' > $M/f`, text))
	// Each try doubles the wait, so that it is minutes in the end.
	for range 4 {
		s.until("delayed", func() bool { return s.status().Queue.Delayed == 1 })
		refused := s.link().RefusedTotal
		s.reload(config(q.Exchange))
		s.until("refused again", func() bool { return s.link().RefusedTotal > refused })
	}
	s.until("delayed", func() bool { return s.status().Queue.Delayed == 1 })
	s.reload(config("amq.direct", "allow_exchange: ", other.Exchange, "\n"))
	s.write("waiting")
	s.until("waiting", func() bool { return s.link().State == "waiting" })
	s.reload(config(q.Exchange, "allow_exchange: ", other.Exchange, "\n"))
	s.untilSent()
	if a, b := consume(t, q, 1), consume(t, other, 1); !slices.Equal([]string{a[0].Exchange, b[0].Exchange}, []string{q.Exchange, other.Exchange}) {
		t.Errorf("got %+v and %+v", a, b)
	}
}
