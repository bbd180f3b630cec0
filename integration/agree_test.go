package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inMetrics are the names of numbers of status.json in the metrics.
var inMetrics = map[string]string{
	"queue.ready":                `spoolfs_queue_messages{route="default",state="ready"}`,
	"queue.leased":               `spoolfs_queue_messages{route="default",state="leased"}`,
	"queue.delayed":              `spoolfs_queue_messages{route="default",state="delayed"}`,
	"queue.dead":                 `spoolfs_queue_messages{route="default",state="dead"}`,
	"queue.staged":               `spoolfs_queue_messages{route="default",state="staged"}`,
	"queue.partial":              `spoolfs_partial_files`,
	"queue.bytes":                `spoolfs_queue_bytes`,
	"queue.limit_bytes":          `spoolfs_quota_bytes`,
	"publisher.in_flight":        `spoolfs_in_flight_messages{route="default"}`,
	"publisher.confirmed_total":  `spoolfs_published_total{route="default"}`,
	"publisher.returned_total":   `spoolfs_returned_total{route="default"}`,
	"publisher.rejected_total":   `spoolfs_nacked_total{route="default"}`,
	"publisher.invalid_total":    `spoolfs_invalid_total{route="default"}`,
	"publisher.requeued_total":   `spoolfs_requeued_total{route="default"}`,
	"publisher.sessions_total":   `spoolfs_connections_total{route="default"}`,
	"publisher.reconnects_total": `spoolfs_reconnects_total{route="default"}`,
	"publisher.failures_total":   `spoolfs_connection_failures_total{route="default"}`,
	"fs.open_files":              `spoolfs_open_files`,
	"fs.held_files":              `spoolfs_held_files`,
	"fs.ingested_files_total":    `spoolfs_ingested_files_total`,
	"fs.ingested_messages_total": `spoolfs_ingested_total`,
	"fs.ingested_dead_total":     `spoolfs_ingested_dead_total`,
	"fs.ingested_partial_total":  `spoolfs_ingested_partial_total`,
	"fs.purged_total":            `spoolfs_purged_total`,
	"fs.redriven_total":          `spoolfs_redriven_total`,
	"fs.panics_total":            `spoolfs_panics_total`,
}

// numbers are the numbers of status.json, by section and key.
func (s *spool) numbers() map[string]float64 {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, ".status", "status.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	var sections map[string]any
	if err := json.Unmarshal(text, &sections); err != nil {
		s.t.Fatal(err)
	}
	all := map[string]float64{}
	for _, section := range []string{"queue", "publisher", "fs"} {
		keys, _ := sections[section].(map[string]any)
		for key, value := range keys {
			if n, ok := value.(float64); ok {
				all[section+"."+key] = n
			}
		}
	}
	return all
}

// moves says of a number that it is another one a moment later, though nothing
// happens.
func moves(key string) bool {
	return strings.HasSuffix(key, "_seconds") || strings.HasSuffix(key, "free_bytes") || key == "store_bytes"
}

// steady are the numbers that stand still; ok says that they do.
func (s *spool) steady() (all map[string]float64, ok bool) {
	s.t.Helper()
	all = s.numbers()
	for key, n := range s.numbers() {
		if !moves(key) && all[key] != n {
			return nil, false
		}
	}
	return all, true
}

// loggedNumbers are those of the last summary in the log.
func (s *spool) loggedNumbers() map[string]float64 {
	all := map[string]float64{}
	log := s.stderr.String()
	at := strings.LastIndex(log, "msg=summary ")
	if at < 0 {
		return all
	}
	line, _, _ := strings.Cut(log[at:], "\n")
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		var n float64
		if _, err := fmt.Sscan(value, &n); err == nil {
			all[key] = n
		}
	}
	return all
}

// checkAgree checks that status.json, the summary, the metrics of both kinds and the
// log say the same (G11), and that it is what was done.
func (s *watched) checkAgree(what string, want map[string]float64) {
	s.t.Helper()
	var status map[string]float64
	s.until("steady "+what, func() (ok bool) {
		status, ok = s.steady()
		return ok
	})
	for key, n := range want {
		if status[key] != n {
			s.t.Errorf("%s: %s is %g in status.json, want %g", what, key, status[key], n)
		}
	}
	file, err := os.ReadFile(filepath.Join(s.dir, ".status", "metrics"))
	if err != nil {
		s.t.Fatal(err)
	}
	_, page := s.get("/metrics")
	for key, name := range inMetrics {
		if _, ok := status[key]; !ok {
			s.t.Errorf("there is no %s in status.json", key)
		}
		for from, text := range map[string]string{".status/metrics": string(file), "/metrics": page} {
			if n := numberIn(s.t, text, name); n != status[key] {
				s.t.Errorf("%s: %s is %g in %s, and %s is %g in status.json", what, name, n, from, key, status[key])
			}
		}
	}
	summary := s.summary()
	for _, line := range []string{
		fmt.Sprintf("%.0f ready, %.0f leased, %.0f delayed, %.0f staged", status["queue.ready"], status["queue.leased"], status["queue.delayed"], status["queue.staged"]),
		fmt.Sprintf("%.0f set aside, and %.0f partial files", status["queue.dead"], status["queue.partial"]),
		fmt.Sprintf("%.0f confirmed, %.0f in flight", status["publisher.confirmed_total"], status["publisher.in_flight"]),
		fmt.Sprintf("%.0f ingested with %.0f messages", status["fs.ingested_files_total"], status["fs.ingested_messages_total"]),
	} {
		if !strings.Contains(summary, line) {
			s.t.Errorf("%s: the summary does not say %q:\n%s", what, line, summary)
		}
	}
	s.untilLogged(what, status)
}

// untilLogged waits for a line of the log with these numbers.
func (s *spool) untilLogged(what string, status map[string]float64) {
	s.t.Helper()
	differs := ""
	deadline := time.Now().Add(time.Minute)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for ; ; <-poll.C {
		logged := s.loggedNumbers()
		differs = ""
		found := 0
		for path, n := range status {
			_, key, _ := strings.Cut(path, ".")
			got, ok := logged[key]
			if !ok || moves(key) {
				continue
			}
			if found++; got != n {
				differs += fmt.Sprintf(" %s is %g, in status.json %g", key, got, n)
			}
		}
		if differs == "" && found >= 15 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: the log has %d of the numbers:%s\n%s", what, found, differs, s.stderr)
		}
	}
}

// TestStatus_Agrees proves G11: whatever is done to a spool, status.json, the summary,
// the metrics in the mount and over HTTP, and the log have the same numbers.
func TestStatus_Agrees(t *testing.T) {
	node := brokerNode(t)
	exchange := fmt.Sprintf("xs_agree_%d", time.Now().UnixNano())
	s := newWatched(t, node.URL(), "--exchange", exchange, "--returned", "dead", "--file-limit", "64KiB", "--log-summary", "100ms")
	s.start()

	// Nobody wants them yet: 20 messages are set aside; with them three lines that
	// are none, and one that is torn. A file is refused, as it is too large.
	s.sh(fmt.Sprintf(`for i in $(seq 20); do echo '%s' > $M/a$i; done
		printf 'x\ny\nz\n' > $M/junk; printf '{"torn' > $M/torn
		! (head -c 100000 /dev/zero > $M/large) 2> /dev/null`, record("a")))
	s.until("done", func() bool {
		n := s.numbers()
		return n["queue.ready"]+n["queue.leased"]+n["queue.staged"]+n["fs.open_files"] == 0
	})
	dead := s.numbers()["queue.dead"]
	if n := s.number(`spoolfs_rejected_total{reason="file-size"}`); n < 1 {
		t.Errorf("%g files were too large", n)
	}
	s.checkAgree("with dead letters", map[string]float64{
		"publisher.returned_total": 20, "publisher.confirmed_total": 0, "fs.ingested_messages_total": 20, "publisher.failures_total": 0,
	})
	if dead < 23 {
		t.Errorf("%g dead letters", dead)
	}

	// Away: 30 wait. A pause makes the numbers stand still.
	stopBroker(t, node)
	s.sh(fmt.Sprintf(`for i in $(seq 30); do echo '%s' > $M/b$i; done`, record("b")))
	s.until("aware of it", func() bool { return s.numbers()["publisher.failures_total"] > 1 })
	s.sh(`echo pause > $M/.status/ctl`)
	s.until("paused", func() bool { return s.status().Publisher.State == "paused" })
	s.checkAgree("without a broker", map[string]float64{"queue.ready": 30, "queue.dead": dead, "fs.ingested_messages_total": 50})

	// Back, with a queue that wants them; what was returned goes again, the rest is
	// purged.
	startBroker(t, node)
	s.until("not paused", func() bool {
		s.sh(`echo resume > $M/.status/ctl`)
		return s.status().Publisher.State != "paused"
	})
	s.until("sent", func() bool { return s.numbers()["queue.ready"]+s.numbers()["queue.leased"] == 0 })
	s.until("returned", func() bool { return s.numbers()["publisher.returned_total"] == 50 })
	bind(t, node.URL(), exchange)
	s.sh(`cd $M/.status/routes/default/dead
		grep -l '^reason returned' * | xargs mv -t $M`)
	s.until("redriven", func() bool { return s.numbers()["publisher.confirmed_total"] == 50 })
	s.sh(`rm $M/.status/routes/default/dead/* $M/.status/partial/*`)
	s.checkAgree("after the redrive", map[string]float64{
		"queue.ready": 0, "queue.dead": 0, "queue.partial": 0, "fs.redriven_total": 50,
		"publisher.confirmed_total": 50, "publisher.returned_total": 50, "fs.ingested_messages_total": 50,
	})
	if n := s.numbers(); n["publisher.reconnects_total"] != 1 || n["fs.purged_total"] != dead-20+n["fs.ingested_partial_total"] {
		t.Errorf("at the end the numbers are %v", n)
	}
	s.checkLogKept()
}

// checkLogKept: what happened has lines, and no message has one.
func (s *spool) checkLogKept() {
	s.t.Helper()
	log := s.stderr.String()
	for line, most := range map[string]int{
		`msg="cannot publish"`: 3, `msg="publishing again"`: 1, `msg="problem dead-letters"`: 2, `msg="over: problem dead-letters"`: 1,
	} {
		if n := strings.Count(log, line); n < 1 || n > most {
			s.t.Errorf("%d lines %s, want 1 to %d:\n%s", n, line, most, log)
		}
	}
}
