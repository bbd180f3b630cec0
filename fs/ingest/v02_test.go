package ingest

import (
	"maps"
	"strings"
	"testing"
)

const (
	// Checksums of "f", which is the last component of the path.
	md5OfF    = "8fa14cdd754f91cc6554c9e71929cce7"
	sha512OfF = "711c22448e721e5491d8245b49425aa861f1fc4a15287f0735e203799b65cffec50b5abd0fddd91cd643aeb3b530d48f05e258e7e230a94ed5025c1387bb4e1b"
)

func TestSarracenia_V02Headers(t *testing.T) {
	tests := []struct {
		name, fields string
		want         map[string]string
		reason       string
	}{
		{"no identity", ``, map[string]string{"sum": "n," + md5OfF}, ""},
		{"remove", `, "fileOp": {"remove": ""}`, map[string]string{"sum": "R," + sha512OfF}, ""},
		{"rmdir", `, "fileOp": {"remove": "", "directory": ""}`, map[string]string{"sum": "R," + sha512OfF}, ""},
		{"mkdir", `, "fileOp": {"directory": ""}`, map[string]string{"sum": "m," + sha512OfF}, ""},
		{"link", `, "fileOp": {"link": "f"}`, map[string]string{"sum": "L," + sha512OfF, "link": "f"}, ""},
		{"rename", `, "fileOp": {"rename": "/old"}, "identity": {"method": "random", "value": "77"}`,
			map[string]string{"sum": "0,77", "oldname": "/old"}, ""},
		{"md5", `, "identity": {"method": "md5", "value": "AQID\n"}`, map[string]string{"sum": "d,010203"}, ""},
		{"old name of identity", `, "integrity": {"method": "sha512", "value": "/w=="}`, map[string]string{"sum": "s,ff"}, ""},
		{"arbitrary", `, "identity": {"method": "arbitrary", "value": "v"}`, map[string]string{"sum": "a,v"}, ""},
		{"cod", `, "identity": {"method": "cod", "value": "sha512"}`, map[string]string{"sum": "z,s"}, ""},
		{"cod as a string", `, "identity": "cod,md5"`, map[string]string{"sum": "z,d"}, ""},
		{"unknown method", `, "identity": {"method": "crc", "value": "AQID"}`, nil, ReasonV02BadIdentity},
		{"cod of an unknown method", `, "identity": {"method": "cod", "value": "crc"}`, nil, ReasonV02BadIdentity},
		{"not base64", `, "identity": {"method": "md5", "value": "?"}`, nil, ReasonV02BadIdentity},
		{"identity of another type", `, "identity": 7`, nil, ReasonV02BadIdentity},
		{"size", `, "size": 12, "identity": "cod,md5"`, map[string]string{"parts": "1,12,1,0,0", "sum": "z,d"}, ""},
		{"size as a string", `, "size": "12", "identity": "cod,md5"`, map[string]string{"parts": "1,12,1,0,0", "sum": "z,d"}, ""},
		{"bad size", `, "size": 1.5`, nil, ReasonV02BadSize},
		{"blocks", `, "size": 1, "blocks": {"method": "inplace", "size": "5", "count": 3, "remainder": 2, "number": 1}, "identity": "cod,md5"`,
			map[string]string{"parts": "i,5,3,2,1", "sum": "z,d"}, ""},
		{"parts", `, "blocks": {"method": "partitioned", "size": 5, "count": 3, "remainder": 2, "number": 1}, "identity": "cod,md5"`,
			map[string]string{"parts": "p,5,3,2,1", "sum": "z,d"}, ""},
		{"blocks of sr3", `, "blocks": {"method": "inplace", "size": 5, "number": 0, "manifest": {}}`, nil, ReasonV02BadBlocks},
		{"others", `, "mode": 420, "mtime": "20261130T07", "ok": true, "user": "\u00e9", "content": {"value": "x"}, "identity": "cod,md5"`,
			map[string]string{"mode": "420", "mtime": "2026113007", "ok": "true", "user": "é", "sum": "z,d"}, ""},
		{"own sum", `, "sum": "x", "identity": "cod,md5"`, map[string]string{"sum": "z,d"}, ""},
		{"longest", `, "k": "` + strings.Repeat("v", 254) + `", "identity": "cod,md5"`,
			map[string]string{"k": strings.Repeat("v", 254), "sum": "z,d"}, ""},
		{"too long", `, "k": "` + strings.Repeat("v", 255) + `"`, nil, ReasonV02HeaderTooLong},
		{"long link", `, "fileOp": {"link": "` + strings.Repeat("v", 255) + `"}`, nil, ReasonV02HeaderTooLong},
		{"not UTF-8", `, "k": "\udce9"`, nil, ReasonV02NotUTF8},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := decodeOne(t, SarraceniaOptions{TopicPrefix: "v02.post"}, pyRecord("", test.fields))
			if m.Reason != test.reason {
				t.Fatalf("reason %q, want %q", m.Reason, test.reason)
			}
			if got := headerMap(m); !m.Dead() && (!maps.Equal(got, test.want) || len(got) != len(m.Headers)) {
				t.Errorf("\n got %v\nwant %v", m.Headers, test.want)
			}
		})
	}
}

func TestSarracenia_V02Body(t *testing.T) {
	tests := []struct {
		name, path, want, reason string
	}{
		{"plain", "a/f", "20261130070000 x a/f", ""},
		{"quoted", "a b/%20#", "20261130070000 x a%20b/%20%23", ""},
		{"letters", `\u00e9`, "20261130070000 x é", ""},
		{"not UTF-8", `a\udce9`, "", ReasonV02NotUTF8},
	}
	for _, test := range tests {
		for _, marked := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				line := recordWith(marked, test.path, `, "_format": "v02"`)
				m := decodeOne(t, SarraceniaOptions{}, line)
				if m.Reason != test.reason || !m.Dead() && string(m.Body) != test.want {
					t.Errorf("got %q %q, want %q %q", m.Body, m.Reason, test.want, test.reason)
				}
				if !m.Dead() && len(m.Headers) != 1 {
					t.Errorf("headers %v, want the sum only", m.Headers)
				}
			})
		}
	}
}

func TestSarracenia_Retry(t *testing.T) {
	const notice = `"20261130073051.93 x a%20b/c/f"`
	long := strings.Repeat("k", 252)
	tests := []struct {
		name, line, key, reason string
	}{
		{"as it was", `["v02.post.a", {"sum": "d,00"}, ` + notice + `]`, "v02.post.a", ""},
		{"headers that are no strings", `["v02.a", {"n": 1.50, "o": {"k": []}}, ` + notice + `]`, "v02.a", ""},
		{"no headers", `["v02.a", {}, ` + notice + `]`, "v02.a", ""},
		{"another tag", `["v02.a", {"_retry_tag_": "?"}, ` + notice + `]`, "v02.a", ""},
		{"long topic", `["v02.` + long + `", {}, ` + notice + `]`, "v02.post.a b.c", ""},
		{"bad time", `["v02.a", {}, "x y z"]`, "", ReasonV2BadNotice},
		{"long header", `["v02.a", {"` + long + `xyz": ""}, ` + notice + `]`, "", ReasonV02HeaderTooLong},
		{"not UTF-8", `["v02.a", {}, "20261130073051 x \udce9"]`, "", ReasonV02NotUTF8},
		{"too many headers", `["v02.a", {"a":0` + strings.Repeat(`,"a":0`, maxFields) + `}, ` + notice + `]`, "", ReasonTooManyFields},
		{"four elements", `["v02.a", {}, ` + notice + `, 1]`, "", ReasonNotAnObject},
		{"wrong types", `["v02.a", [], ` + notice + `]`, "", ReasonNotAnObject},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := decodeOne(t, SarraceniaOptions{}, test.line)
			if m.Reason != test.reason {
				t.Fatalf("reason %q, want %q", m.Reason, test.reason)
			}
			if m.Dead() {
				return
			}
			if got := routingKey("v02.post", m); got != test.key {
				t.Errorf("key %q, want %q", got, test.key)
			}
			if want := strings.Trim(notice, `"`); string(m.Body) != want || m.ContentType != "text/plain" || m.PubTime.IsZero() {
				t.Errorf("got %+v, want body %q", m, want)
			}
			if m.Headers == nil || headerMap(m)["_retry_tag_"] != "" {
				t.Errorf("headers %v", m.Headers)
			}
		})
	}
}

func TestSarracenia_RetryDone(t *testing.T) {
	res := NewSarracenia(SarraceniaOptions{}).Decode([]byte(`["v02.a", {"_retry_tag_": "done"}, "x"]`+"\n"), Position{})
	if len(res.Messages) != 0 || res.Skipped != 1 || res.Lines != 1 {
		t.Errorf("got %+v, want one line skipped", res)
	}
}
