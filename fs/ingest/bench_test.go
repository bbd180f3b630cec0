package ingest

import (
	"bytes"
	"testing"
)

// BenchmarkSarracenia_Decode decodes records of the shim of about 400 bytes, small
// ones of 118 bytes, and those of sr3.
func BenchmarkSarracenia_Decode(b *testing.B) {
	shim := shimRecords(b)
	_, small := loadCase(b, "testdata/corpus/70-many-small")
	_, python := loadCase(b, "testdata/corpus/10-py-v03-diskqueue")
	for _, c := range []struct {
		name string
		data []byte
	}{{"shim", shim}, {"small", small}, {"python", python}} {
		b.Run(c.name, func(b *testing.B) {
			f := NewSarracenia(SarraceniaOptions{})
			lines := bytes.Count(c.data, []byte("\n"))
			b.SetBytes(int64(len(c.data)))
			b.ReportAllocs()
			for b.Loop() {
				if res := f.Decode(c.data, Position{Seen: new(Seen)}); res.Consumed != len(c.data) {
					b.Fatalf("consumed %d of %d bytes", res.Consumed, len(c.data))
				}
			}
			b.ReportMetric(float64(b.N*lines)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(len(c.data)/lines), "B/record")
		})
	}
}

// shimRecords are 1,000 records of files, as sr3c writes them.
func shimRecords(b testing.TB) []byte {
	b.Helper()
	_, data := loadCase(b, "testdata/corpus/01-c-v03-shim-events")
	var files [][]byte
	for line := range bytes.Lines(data) {
		if bytes.Contains(line, []byte("identity")) {
			files = append(files, line)
		}
	}
	var out []byte
	for i := range 1000 {
		out = append(out, files[i%len(files)]...)
	}
	return out
}
