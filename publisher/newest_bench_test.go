package publisher

import (
	"testing"
	"time"

	"spoolfs/queue"
)

// BenchmarkNewestFirst measures how long a fresh message takes from the beginning of its
// Append until the broker has it, in a route that is newest-first and drains 1,000,000
// others with 10,000 a second meanwhile.
func BenchmarkNewestFirst(b *testing.B) {
	there := make(chan time.Time, 1)
	r := newRig(b, &broker{on: func(s *scripted, p Publication) error {
		if p.Message.File == "fresh" {
			there <- time.Now()
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}}, Options{Rate: 10_000})
	r.p.Pause()
	r.until("a pause", func(_ queue.Stats, p Stats) bool { return p.State == Paused })
	if err := r.route.SetOptions(queue.RouteOptions{Order: queue.NewestFirst}); err != nil {
		b.Fatal(err)
	}
	for range 500 {
		r.append(2000)
	}
	r.p.Resume()
	r.until("draining", func(_ queue.Stats, p Stats) bool { return p.ConfirmedTotal > 1000 })
	var sum, slowest time.Duration
	n := 0
	for b.Loop() {
		m := queue.Message{ID: queue.NewFileID().MessageID(1), Line: 1, File: "fresh", Ingested: time.Now()}
		start := time.Now()
		if err := r.route.Append([]queue.Message{m}); err != nil {
			b.Fatal(err)
		}
		took := (<-there).Sub(start)
		sum += took
		slowest = max(slowest, took)
		n++
	}
	s, err := r.route.Stats()
	if err != nil || s.Ready < 500_000 {
		b.Fatalf("the backlog is gone: %+v, %v", s, err)
	}
	b.ReportMetric(float64(sum.Microseconds())/float64(n)/1000, "ms/fresh")
	b.ReportMetric(float64(slowest.Microseconds())/1000, "ms-slowest")
	b.ReportMetric(0, "ns/op")
}
