package queue

import (
	"testing"
	"time"
)

// BenchmarkNewest measures how long a fresh message takes to be leased that enters a
// route which is NewestFirst, has a long backlog and drains, beside the backlog itself
// and beside a short one. The three take turns.
func BenchmarkNewest(b *testing.B) {
	_, short := newestRoute(b)
	_, long := newestRoute(b)
	fill(b, short, 1000)
	fill(b, long, 1_000_000)
	var fresh [2]time.Duration
	var drained, slowest time.Duration
	n := 0
	for b.Loop() {
		for i, r := range []*Route{short, long} {
			fill(b, r, 1)
			start := time.Now()
			drain(b, r, 1)
			took := time.Since(start)
			fresh[i] += took
			if i == 1 {
				slowest = max(slowest, took)
			}
		}
		start := time.Now()
		drain(b, long, 200)
		drained += time.Since(start)
		n++
		b.StopTimer()
		if n%1000 == 0 { // a store of a good size, whatever b.N is
			fill(b, long, 200_000)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(fresh[1].Microseconds())/float64(n), "fresh-us")
	b.ReportMetric(float64(slowest.Microseconds()), "slowest-us")
	b.ReportMetric(fresh[0].Seconds()/fresh[1].Seconds(), "long-of-short")
	b.ReportMetric(float64(200*n)/drained.Seconds(), "backlog/s")
	b.ReportMetric(0, "ns/op")
}
