package ingest

import (
	"testing"
	"time"
)

func TestParsePubTime(t *testing.T) {
	at := func(ns int) time.Time { return time.Date(2026, 11, 30, 7, 16, 36, ns, time.UTC) }
	tests := []struct {
		text string
		want time.Time
		ok   bool
	}{
		{"20261130T071636", at(0), true},
		{"20261130071636", at(0), true},
		{"20261130T071636.5", at(500000000), true},
		{"20261130071636.151408780", at(151408780), true},
		{"20261130T071636.1514087809999", at(151408780), true},
		{"20260231T071636", time.Time{}, true},
		{"20261130T250000.1", time.Time{}, true},
		{"99991231T000000", time.Time{}, true},
		{"00000101T000000", time.Time{}, true},
		{"16500101T000000", time.Time{}, true},
		{"", time.Time{}, false},
		{"20261130T071636.", time.Time{}, false},
		{"20261130T071636.5Z", time.Time{}, false},
		{"20261130T071636.5.5", time.Time{}, false},
		{"20261130 071636", time.Time{}, false},
		{"20261130T07163", time.Time{}, false},
		{"20261130T0716360", time.Time{}, false},
		{"2026113T0071636", time.Time{}, false},
		{"-0261130T071636", time.Time{}, false},
	}
	for _, test := range tests {
		text := []byte(test.text)
		got, ok := parsePubTime(text)
		if !got.Equal(test.want) || ok != test.ok {
			t.Errorf("%q: got %v %v, want %v %v", test.text, got, ok, test.want, test.ok)
		}
		if string(text) != test.text {
			t.Errorf("%q was changed to %q", test.text, text)
		}
	}
}
