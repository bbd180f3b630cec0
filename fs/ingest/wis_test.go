package ingest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"spoolfs/queue"
)

// TestSarracenia_WIS holds what the corpus does not show of the wis format.
func TestSarracenia_WIS(t *testing.T) {
	const base = `"_format": "wis", "pubTime": "20261130074530.72", "baseUrl": "http://h\u00e9", "relPath": "a/b \"c\""`
	file := queue.FileID{15: 7}
	id := wisID(file.MessageID(1))
	for name, c := range map[string]struct{ fields, key, body string }{
		"no size": {``, "",
			`{"type": "Feature", "geometry": null, "properties": {"pubtime": "2026-11-30T07:45:30.72Z"}, "version": "v04", "id": "ID", "links": [{"rel": "canonical", "href": "http://h\u00e9/a/b \"c\""}]}`},
		"all that has a place": {`, "topic": "a/b.c", "size": 1e400, "contentType": "x/y", "retrievePath": "r", "geometry": {"type": "Point"}, "mode": "644", "identity": 1, "k": [1]`, "a.b.c",
			`{"type": "Feature", "geometry": {"type": "Point"}, "properties": {"k": [1], "pubtime": "2026-11-30T07:45:30.72Z"}, "version": "v04", "id": "ID", "links": [{"rel": "canonical", "href": "http://h\u00e9/r", "length": 1e400, "type": "x/y"}]}`},
		"own properties": {`, "properties": {"k": 0, "pubtime": 1, "z": 2}, "k": 1`, "",
			`{"type": "Feature", "geometry": null, "properties": {"k": 1, "pubtime": "2026-11-30T07:45:30.72Z", "z": 2}, "version": "v04", "id": "ID", "links": [{"rel": "canonical", "href": "http://h\u00e9/a/b \"c\""}]}`},
		"own id": {`, "id": "mine"`, "",
			`{"type": "Feature", "geometry": null, "properties": {"id": "mine", "pubtime": "2026-11-30T07:45:30.72Z"}, "version": "v04", "links": [{"rel": "canonical", "href": "http://h\u00e9/a/b \"c\""}]}`},
		"topic too long": {`, "topic": "` + strings.Repeat("t", 256) + `"`, "",
			`{"type": "Feature", "geometry": null, "properties": {"pubtime": "2026-11-30T07:45:30.72Z"}, "version": "v04", "id": "ID", "links": [{"rel": "canonical", "href": "http://h\u00e9/a/b \"c\""}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the id is not drawn anew
				res := NewSarracenia(SarraceniaOptions{}).Decode([]byte("{"+base+c.fields+"}\n"), Position{File: file})
				m := res.Messages[0]
				if want := strings.Replace(c.body, "ID", id, 1); string(m.Body) != want || !json.Valid(m.Body) {
					t.Errorf("body is\n%s, want\n%s", m.Body, want)
				}
				if m.Key != c.key || !m.HasKey || m.ContentType != "application/geo+json" || m.Headers == nil {
					t.Errorf("message is %+v, want key %q", m, c.key)
				}
			}
		})
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("%s is no UUID", id)
	}
	if other := wisID(file.MessageID(2)); other == id {
		t.Error("two lines have one id")
	}
}

// TestSplitCode holds what case 06 of the corpus does not show.
func TestSplitCode(t *testing.T) {
	for _, c := range []struct {
		fields string
		want   int
	}{
		{`"identity": {"method": "md5", "value": "ANRvnxiNwFWuZtvLXmHlWQ=="}`, '5'}, // d,00d46f9f188dc0...
		{`"identity": {"method": "random", "value": "4567"}`, '6'},
		{`"identity": {"method": "cod", "value": "sha512"}`, ','},
		{`"identity": "cod,sha512"`, ','},
		{`"identity": {"method": "arbitrary", "value": "x"}`, 0},
		{`"identity": {"method": "unheard-of", "value": "x"}`, 0},
		{`"fileOp": {"directory": ""}`, 0},
		{`"fileOp": {"remove": "", "directory": ""}`, 0},
	} {
		m := decodeOne(t, SarraceniaOptions{}, strings.Replace(plain, "{", "{"+c.fields+",", 1))
		if got := SplitCode(&m); got != c.want {
			t.Errorf("%s: %d, want %d", c.fields, got, c.want)
		}
		m = decodeOne(t, SarraceniaOptions{TopicPrefix: "v02.post"}, strings.Replace(plain, "{", "{"+c.fields+",", 1))
		if got := SplitCode(&m); !m.Dead() && !strings.Contains(c.fields, "remove") && got != c.want {
			t.Errorf("in v02 %s: %d, want %d", c.fields, got, c.want)
		}
	}
	if got := SplitCode(&queue.Message{}); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}
