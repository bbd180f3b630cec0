package ingest

import (
	"fmt"
	"testing"
)

// TestSubject: which records are about the same.
func TestSubject(t *testing.T) {
	sarracenia := func(line string) string {
		return decodeOne(t, SarraceniaOptions{Subjects: true}, line).Subject
	}
	v03 := func(path, fields string) string { return sarracenia(recordWith(false, path, fields)) }
	v02 := func(path, headers string) string {
		return sarracenia(fmt.Sprintf(`["v02.post.a", {%s}, "20261130073051.93 x/ %s"]`, headers, path))
	}
	f := v03("a/f", "")
	if f == "" || len(f) != 16 {
		t.Fatalf("subject %q", f)
	}
	same := map[string]string{
		"a later version": v03("a/f", `, "identity": {"method": "md5", "value": "AQID"}, "size": 7`),
		"its removal":     v03("a/f", `, "fileOp": {"remove": ""}`),
		"a link":          v03("a/f", `, "fileOp": {"link": "/l"}`),
		"a slash":         v03("/a/f", ""),
		"whole":           v03("a/f", `, "parts": "1,12,1,0,0"`),
		"of sr3":          sarracenia(pyRecord("", "")),
		"as v02":          sarracenia(recordWith(false, "a/f", `, "_format": "v02"`)),
	}
	for name, got := range same {
		if got != f {
			t.Errorf("%s: it is about something else", name)
		}
	}
	key := v02("a%20b", `"parts": "1,12,1,0,0"`)
	if got := v02("a%20b", `"sum": "R,0"`); got == "" || got != key {
		t.Errorf("v02: the removal is about %q, the file about %q", got, key)
	}
	others := map[string]string{
		"another path": v03("a/g", ""), "another exchange": v03("a/f", `, "post_exchange": "xs_y"`),
		"another key": v03("a/f", `, "post_topic": "k"`), "v02": key, "v02, another path": v02("a", ""),
		"another base": sarracenia(`{"pubTime": "20261130T070000", "baseUrl": "y", "relPath": "a/f"}`),
		"moved slash":  sarracenia(`{"pubTime": "20261130T070000", "baseUrl": "x/a", "relPath": "f"}`),
	}
	seen := map[string]string{f: "the first"}
	for name, got := range others {
		if other, twice := seen[got]; got == "" || twice {
			t.Errorf("%s: it is about the same as %s", name, other)
		}
		seen[got] = name
	}
	none := map[string]string{
		"rename": v03("a/f", `, "fileOp": {"rename": "a/e"}`), "old name": v03("a/f", `, "oldname": "a/e"`),
		"block": v03("a/f", `, "blocks": {"method": "inplace", "size": 5, "number": 1}`),
		"part":  v03("a/f", `, "parts": "i,5,3,2,1"`), "v02 part": v02("a", `"parts": "p,5,3,2,1"`), "v02 rename": v02("a", `"newname": "b"`),
		"not wanted": decodeOne(t, SarraceniaOptions{}, recordWith(false, "a/f", "")).Subject,
		"dead":       sarracenia(`{"relPath": "a/f"}`),
	}
	for name, got := range none {
		if got != "" {
			t.Errorf("%s: it is about something", name)
		}
	}
}

// TestSubject_Formats: of a raw file it is its path, of a line of amqp what that says.
func TestSubject_Formats(t *testing.T) {
	decode := func(format string, s Settings, data, path string) string {
		f, err := New(format, s)
		if err != nil {
			t.Fatal(err)
		}
		res := f.Decode([]byte(data), Position{Origin: Origin{Path: path}})
		m := res.Tail
		if m == nil {
			m = &res.Messages[0]
		}
		if m.Dead() {
			t.Fatalf("%s: %s", data, m.Reason)
		}
		return m.Subject
	}
	raw := func(path string, subjects bool) string {
		return decode("raw", Settings{RoutingKey: "k", Subjects: subjects}, "x", path)
	}
	if a := raw("d/a", true); a == "" || a != raw("d/a", true) || a == raw("d/b", true) || a == raw("a", true) || raw("d/a", false) != "" {
		t.Error("raw: the subject is not the path")
	}
	amqp := func(fields string, subjects bool) string {
		return decode("amqp", Settings{Subjects: subjects}, `{`+fields+`"body": "x"}`+"\n", "f")
	}
	a := amqp(`"subject": "a", `, true)
	if a == "" || a != amqp(`"subject": "a", `, true) || a == amqp(`"subject": "b", `, true) {
		t.Error("amqp: the subject is not what the line says")
	}
	if amqp("", true) != "" || amqp(`"subject": "", `, true) != "" || amqp(`"subject": "a", `, false) != "" {
		t.Error("amqp: a subject that nobody has asked for")
	}
}
