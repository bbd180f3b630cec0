package publisher

import (
	"fmt"
	"runtime/metrics"
	"testing"
	"time"

	"spoolfs/queue"
)

// BenchmarkWorkers measures publisher and queue with a broker that confirms at once, and
// how long a message waits for mutexes; -mutexprofile shows for which.
func BenchmarkWorkers(b *testing.B) {
	for _, workers := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			r := newRig(b, &broker{}, Options{Workers: workers})
			n, waited, took := 0, 0.0, time.Duration(0)
			for b.Loop() {
				const round = 20_000
				r.p.Pause()
				r.until("a pause", func(_ queue.Stats, p Stats) bool { return p.State == Paused })
				for range round / 2000 {
					r.append(2000)
				}
				before, start := mutexWait(), time.Now()
				r.p.Resume()
				r.untilEmpty()
				waited += mutexWait() - before
				took += time.Since(start)
				n += round
			}
			b.ReportMetric(float64(n)/took.Seconds(), "messages/s")
			b.ReportMetric(waited*1e6/float64(n), "mutex-us/message")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// mutexWait is how long goroutines have waited for mutexes so far, in seconds.
func mutexWait() float64 {
	sample := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
}
