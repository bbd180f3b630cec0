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

// TestMount_BrokerComesAndGoes: the broker is stopped and killed while messages
// flow. Everything arrives; what arrives twice has the same message id.
func TestMount_BrokerComesAndGoes(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	s := startSpool(t, node.URL(), "--exchange", q.Exchange)
	const writers, files = 4, 100
	for round := range 2 {
		w := startWriters(t, s.dir, writers, files, false)
		before := s.status().Publisher.ConfirmedTotal
		s.until("publishing", func() bool { return s.status().Publisher.ConfirmedTotal > before })
		if round == 0 {
			stopBroker(t, node)
		} else if err := node.Kill(); err != nil {
			t.Fatal(err)
		}
		reports := w.finish()
		s.until("aware of the loss", func() bool { return s.status().Publisher.State == "waiting" })
		startBroker(t, node)
		s.untilSent()
		got, err := q.Drain(limit(t, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		checkArrivals(t, reports, withoutRepeats(t, got), s.status().Queue.Late)
	}
}

// withoutRepeats drops repeats, which must have the same message id and body.
func withoutRepeats(t testing.TB, got []rabbit.Delivery) []rabbit.Delivery {
	t.Helper()
	var once []rabbit.Delivery
	bodies := map[string]string{}
	for _, d := range got {
		body, repeated := bodies[d.MessageID]
		switch {
		case !repeated:
			bodies[d.MessageID] = string(d.Body)
			once = append(once, d)
		case body != string(d.Body):
			t.Errorf("message id %s has two bodies", d.MessageID)
		}
	}
	if n := len(got) - len(once); n > 1024 {
		t.Errorf("%d repeats, want at most the window", n)
	} else {
		t.Logf("%d messages, %d repeats", len(once), n)
	}
	return once
}

// TestMount_ExchangeIsDeclared: the first message of a site finds the exchange
// made, and a message that no queue wants is confirmed and counted, as a topic
// exchange means it.
func TestMount_ExchangeIsDeclared(t *testing.T) {
	node := brokerNode(t)
	s := startSpool(t, node.URL(), "--exchange", "xs_nobody")
	s.sh(fmt.Sprintf(`echo '%s' > $M/f`, record("a")))
	s.until("confirmed", func() bool { return s.status().Publisher.ConfirmedTotal == 1 })
	out, err := node.Ctl(limit(t, time.Minute), "list_exchanges", "name", "type", "durable")
	if err != nil || !strings.Contains(out, "xs_nobody\ttopic\ttrue") {
		t.Errorf("exchanges are %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, ".status", "publisher"))
	if err != nil || !strings.Contains(string(text), "returned_total 1\n") {
		t.Errorf("%v in\n%s", err, text)
	}
}

// TestMount_PoisonMessage: one message that the broker cannot take, and does not
// name when it ends the channel, is found and set aside; the others are
// delivered, and everything goes on (G4, B10).
func TestMount_PoisonMessage(t *testing.T) {
	node := brokerNode(t)
	if out, err := node.Ctl(limit(t, time.Minute), "eval", "application:set_env(rabbit, max_message_size, 1000000)."); err != nil {
		t.Fatal(err, out)
	}
	t.Cleanup(func() {
		node.Ctl(limit(t, time.Minute), "eval", "application:set_env(rabbit, max_message_size, 134217728).")
	})
	for name, field := range map[string]string{
		"too large": `"x": "` + strings.Repeat("y", 1_100_000) + `"`,
		"reserved":  `"_format": "v02", "CC": "x", "mtime": "20261130T070000"`,
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t, node)
			s := startSpool(t, node.URL(), "--exchange", q.Exchange)
			text := ""
			for i := range 21 {
				extra := ""
				if i == 10 {
					extra = ", " + field
				}
				text += strings.TrimSuffix(record(fmt.Sprint(i)), "}") + extra + "}\n"
			}
			if err := os.WriteFile(filepath.Join(s.dir, "f"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s.untilIngested(21)
			s.untilSent()
			got, err := q.Drain(limit(t, time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if got = withoutRepeats(t, got); len(got) != 20 {
				t.Errorf("received %d messages, want 20", len(got))
			}
			if st := s.status(); st.Queue.Dead != 1 {
				t.Errorf("the status is %+v", st)
			}
		})
	}
}
