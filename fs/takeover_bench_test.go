package fs

import (
	"fmt"
	"testing"
)

// BenchmarkTakeOver measures how long it takes to take over many open files, a
// third of which have been flushed.
func BenchmarkTakeOver(b *testing.B) {
	for _, files := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			r := newRig(b, Options{UserShare: 1})
			u := r.as(0)
			for i := range files {
				f := u.mustCreate(fmt.Sprintf("%0255d", i))
				f.writeAt(line("000001"), 0)
				if i%3 == 0 {
					f.flush()
				}
			}
			for b.Loop() {
				r.takeOver()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*files), "ns/file")
		})
	}
}
