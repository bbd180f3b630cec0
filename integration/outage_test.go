package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
)

// bind makes a queue that takes what comes to an exchange.
func bind(t testing.TB, url, exchange string) rabbit.Queue {
	t.Helper()
	q := rabbit.Queue{URL: url, Name: exchange, Exchange: exchange}
	if err := q.Declare(limit(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	return q
}

// TestMount_OutageLog: while the broker is away and a thousand messages a second
// come, each change of state has a line, and no message and no attempt has one
// (O5). With SPOOLFS_CHAOS it is ten minutes; TestLog_Outage of cmd has ten
// minutes that pass faster.
func TestMount_OutageLog(t *testing.T) {
	length, most := 3*time.Second, 15
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		length, most = 10*time.Minute, 100
	}
	node := brokerNode(t)
	q := newQueue(t, node)
	s := newSpool(t, plainBinary, node.URL(), "--exchange", q.Exchange)
	s.start()
	s.write("first")
	s.untilSent()
	stopBroker(t, node)
	const files = 10 // a second, of a hundred lines each
	text := strings.Repeat(record("a")+"\n", 100)
	tick := time.NewTicker(time.Second / files)
	defer tick.Stop()
	sent := uint64(1)
	for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
		if err := os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("f%d", sent)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		sent += 100
	}
	s.untilIngested(sent)
	if st := s.status(); st.Publisher.ConfirmedTotal != 1 || st.Publisher.LastError == "" {
		t.Errorf("the status is %+v", st)
	}
	startBroker(t, node)
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(length + time.Minute); s.status().Publisher.ConfirmedTotal < sent; <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("it is not sent:\n%s", s.summary())
		}
	}
	s.stop()
	log := s.stderr.String()
	n := strings.Count(log, "\n")
	t.Logf("%d messages, %d lines", sent, n)
	if n > most {
		t.Errorf("%d lines, want at most %d:\n%s", n, most, log)
	}
	for _, line := range []string{"msg=connected", `msg="cannot publish"`, `msg="publishing again"`, "msg=summary", "msg=stopped"} {
		if !strings.Contains(log, line) {
			t.Errorf("there is no line %s:\n%s", line, log)
		}
	}
}
