package ingest

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"spoolfs/queue"
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

// roof is where a file comes from.
var roof = Origin{
	Path: "sensors/north/roof.Temp.JSON", Host: "n1.example.org", UID: 1000, GID: 100, User: "ada",
	Time: time.Date(2026, 11, 30, 23, 4, 5, 6, time.FixedZone("", -3600)),
}

// TestRaw_Templates proves I15: fields stand for what the document says.
func TestRaw_Templates(t *testing.T) {
	top := Origin{Path: "roof", GID: -1}
	odd := Origin{Path: "m\xe9t\xc3\xa9o/x."}
	for _, tt := range []struct {
		template string
		origin   *Origin
		want     string
	}{
		{"${dir}.${base}", &roof, "sensors.north.roof.Temp"},
		{"${dir}.${base}", &top, "roof"},
		{"raw.${dir}.${base}", &top, "raw.roof"},
		{"${base}.${dir}", &top, "roof"},
		{"${ext}${dir}", &top, ""},
		{"${dir}${dir}", &top, ""},
		{"${base}.${ext}", &top, "roof."},
		{"${name}|${ext}|${path}", &roof, "roof.Temp.JSON|JSON|sensors/north/roof.Temp.JSON"},
		{"${host} ${uid} ${gid} ${user}", &roof, "n1.example.org 1000 100 ada"},
		{"${uid}${gid}${user}", &top, "0"},
		{"${date} ${time}", &roof, "20261201 20261201T000405Z"},
		{"$$${uid}$$", &roof, "$1000$"},
		{"${dir}.${name}.${base}", &odd, "m%E9téo.x..x"},
	} {
		f, err := newRaw(Settings{RoutingKey: tt.template, Headers: []string{"h=" + tt.template}})
		if err != nil {
			t.Fatalf("%s: %v", tt.template, err)
		}
		m := f.Decode([]byte("x"), Position{Origin: *tt.origin}).Tail
		if m.Key != tt.want || !reflect.DeepEqual(m.Headers, []queue.Header{{Name: "h", Value: tt.want}}) {
			t.Errorf("%s of %s: key %q, headers %v, want %q", tt.template, tt.origin.Path, m.Key, m.Headers, tt.want)
		}
	}
}

// TestRaw_ContentType: it is that of the configuration, or of the extension by a table
// of ours.
func TestRaw_ContentType(t *testing.T) {
	for path, want := range map[string]string{
		"a/roof.json": "application/json", "a.b/roof": unknownContent, "x.TXT": "text/plain", "x.unheard": unknownContent, "json": unknownContent,
	} {
		for _, set := range []string{"", "text/x-own"} {
			f, err := newRaw(Settings{RoutingKey: "k", ContentType: set})
			if err != nil {
				t.Fatal(err)
			}
			if set != "" {
				want = set
			}
			if m := f.Decode([]byte("x"), Position{Origin: Origin{Path: path}}).Tail; m.ContentType != want {
				t.Errorf("%s: content type %q, want %q", path, m.ContentType, want)
			}
		}
	}
}

// TestRaw_BeyondAMQP: a file whose name makes what AMQP cannot carry is a dead letter
// with its bytes, which another configuration can still publish.
func TestRaw_BeyondAMQP(t *testing.T) {
	f, err := newRaw(Settings{RoutingKey: "${dir}.${name}", Headers: []string{"a=${path}${path}"}})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("d/", 40) + strings.Repeat("é", 90)
	m := f.Decode([]byte("body"), Position{Origin: Origin{Path: long}}).Tail
	if m.Reason != "routing-key-too-long: 260 bytes, at most 255" || string(m.Body) != "body" || m.HasKey || m.Headers != nil {
		t.Errorf("a long key: %+v", m)
	}
	f, err = newRaw(Settings{RoutingKey: "k", Headers: []string{"a=" + strings.Repeat("${path}", 40)}})
	if err != nil {
		t.Fatal(err)
	}
	m = f.Decode([]byte("body"), Position{Origin: Origin{Path: strings.Repeat("d/", 2000) + "x"}}).Tail
	if !strings.HasPrefix(m.Reason, "headers-too-long: ") || string(m.Body) != "body" || m.HasKey {
		t.Errorf("long headers: %+v", m)
	}
}
