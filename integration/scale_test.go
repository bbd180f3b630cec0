package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestScale_Many holds the simulation of package integration/bench/scale against
// reality: many spools lose a real broker, fill up, and all come back to it when it is
// there again. Each message of each arrives, in the order of its spool.
func TestScale_Many(t *testing.T) {
	node := brokerNode(t)
	q := newQueue(t, node)
	spools, backlog := times(5, 50), times(400, 2000)
	var all []*spool
	for range spools {
		s := newSpool(t, plainBinary, node.URL(), "--exchange", q.Exchange, "--no-keeper")
		s.launch()
		all = append(all, s)
	}
	for i, s := range all {
		s.until("ready", func() bool { return strings.Contains(s.stderr.String(), "msg=ready") })
		s.sh(fmt.Sprintf(`echo '%s' > $M/f`, record(fmt.Sprintf("%d/0", i))))
	}
	for _, s := range all {
		s.until("connected", func() bool { return s.status().Publisher.ConfirmedTotal == 1 })
	}
	stopBroker(t, node)
	for i, s := range all {
		s.fill(i, backlog)
	}
	startBroker(t, node)
	took := awaitSent(t, all)
	t.Logf("%d messages each: the first of %d spools had caught up %s after the broker was back, half of them %s, all %s",
		backlog, spools, took[0], took[spools/2], took[spools-1])
	got, err := q.Drain(limit(t, 5*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	next := make([]int, spools)
	for _, d := range withoutRepeats(t, got) {
		var i, number int
		_, rest, _ := strings.Cut(string(d.Body), `"relPath": "`)
		if _, err := fmt.Sscanf(rest, "d/%d/%d", &i, &number); err != nil {
			t.Fatalf("%v in %q", err, d.Body)
		}
		if number != next[i] {
			t.Fatalf("spool %d has sent %d, want %d", i, number, next[i])
		}
		next[i]++
	}
	for i, n := range next {
		if n != backlog+1 {
			t.Errorf("%d messages of spool %d have come, want %d", n, i, backlog+1)
		}
	}
}

// awaitSent waits until spools have nothing left to send, and returns how long each
// took, the quickest first.
func awaitSent(t *testing.T, all []*spool) (took []time.Duration) {
	t.Helper()
	ctx, start := limit(t, 5*time.Minute), time.Now()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for waiting := slices.Clone(all); len(waiting) > 0; {
		waiting = slices.DeleteFunc(waiting, func(s *spool) bool {
			q := s.status().Queue
			done := q.Ready+q.Leased+q.Delayed+q.Staged == 0
			if done {
				took = append(took, time.Since(start).Round(time.Millisecond))
			}
			return done
		})
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%d spools are not done with sending:\n%s", len(waiting), waiting[0].summary())
		}
	}
	return took
}

// fill writes a file of so many messages, numbered from 1 on.
func (s *spool) fill(spool, messages int) {
	s.t.Helper()
	var text strings.Builder
	for n := range messages {
		fmt.Fprintln(&text, record(fmt.Sprintf("%d/%d", spool, n+1)))
	}
	path := filepath.Join(s.t.TempDir(), "backlog")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.sh(fmt.Sprintf(`cat '%s' > $M/backlog`, path))
}
