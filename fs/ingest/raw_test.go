package ingest

import (
	"bytes"
	"testing"
)

// TestRaw_Decode proves I11: all bytes are the body, and an empty file is nothing.
func TestRaw_Decode(t *testing.T) {
	f := NewRaw("a.key")
	if res := f.Decode(nil, Position{}); res.Tail != nil || len(res.Messages) != 0 {
		t.Errorf("an empty file gave %+v", res)
	}
	data := []byte("{}\n\x00\xff\n")
	want := bytes.Clone(data)
	res := f.Decode(data, Position{})
	clear(data)
	m := res.Tail
	if m == nil || len(res.Messages) != 0 || res.Consumed != 0 {
		t.Fatalf("got %+v", res)
	}
	if !bytes.Equal(m.Body, want) || m.Key != "a.key" || !m.HasKey || m.Line != 1 || m.Dead() {
		t.Errorf("the message is %+v", m)
	}
}
