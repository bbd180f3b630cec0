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

// BenchmarkMount_CloseToConfirm measures how long a message takes from the
// return of close(2) until the broker has confirmed it, as the status shows it,
// with nothing else in the queue. The wanted median is under 5 ms.
func BenchmarkMount_CloseToConfirm(b *testing.B) {
	node := brokerNode(b)
	q := newQueue(b, node)
	s := newSpool(b, plainBinary, node.URL(), "--exchange", q.Exchange)
	s.start()
	confirmed := func() string {
		text, err := os.ReadFile(filepath.Join(s.dir, ".status", "publisher"))
		if err != nil {
			b.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "confirmed_total ")
		count, _, _ := strings.Cut(rest, "\n")
		return count
	}
	s.write("first") // opens the session
	s.untilSent()
	var times []time.Duration
	n := 1
	for b.Loop() {
		if err := os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("f%d", n)), []byte(record("a")+"\n"), 0o644); err != nil {
			b.Fatal(err)
		}
		n++
		start := time.Now()
		for want := fmt.Sprint(n); confirmed() != want; {
			if time.Since(start) > time.Minute {
				b.Fatalf("no confirm within a minute:\n%s", s.summary())
			}
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "ms-p99")
	if code := s.stop(); code != 0 {
		b.Errorf("exit code %d:\n%s", code, s.stderr)
	}
}
