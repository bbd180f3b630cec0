package ingest

import (
	"bytes"
	"testing"
)

// TestGuard_Allocations: how often a record allocates while it is decoded.
func TestGuard_Allocations(t *testing.T) {
	data := shimRecords(t)
	f := NewSarracenia(SarraceniaOptions{})
	per := testing.AllocsPerRun(5, func() {
		if res := f.Decode(data, Position{Seen: new(Seen)}); res.Consumed != len(data) {
			t.Fatalf("consumed %d of %d bytes", res.Consumed, len(data))
		}
	}) / float64(bytes.Count(data, []byte("\n")))
	t.Logf("%.2f allocations a record", per)
	if per > 6 {
		t.Errorf("%.2f allocations a record, want at most 6", per)
	}
}
