package ingest

import "testing"

// BenchmarkSarracenia_Decode decodes 2,000 plain records of 118 bytes and, for
// comparison, 12 of sr3.
func BenchmarkSarracenia_Decode(b *testing.B) {
	for _, name := range []string{"70-many-small", "11-py-v03-inline-headers"} {
		b.Run(name, func(b *testing.B) {
			_, data := loadCase(b, "testdata/corpus/"+name)
			f := NewSarracenia(SarraceniaOptions{})
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if res := f.Decode(data, Position{}); res.Consumed != len(data) {
					b.Fatalf("consumed %d of %d bytes", res.Consumed, len(data))
				}
			}
		})
	}
}
