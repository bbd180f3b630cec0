package ingest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// recordWith is a record with that path and more fields, marked as python's or
// not.
func recordWith(marked bool, path, fields string) string {
	if marked {
		fields = `, "_deleteOnPost": ["_format"]` + fields
	}
	return fmt.Sprintf(`{"pubTime": "20261130T070000", "baseUrl": "x", "relPath": "%s"%s}`, path, fields)
}

func TestSarracenia_Words(t *testing.T) {
	long := strings.Repeat("d", 200)
	tests := []struct {
		name, path    string
		plain, python []string
	}{
		{"empty", "", nil, nil},
		{"no directory", "f", nil, nil},
		{"two", "a/b/f", []string{"a", "b"}, []string{"a", "b"}},
		{"leading slash", "/a/f", []string{"a"}, []string{"", "a"}},
		{"two leading slashes", "//a/f", []string{"", "a"}, []string{"", "", "a"}},
		{"directory", "a/", []string{"a"}, []string{"a"}},
		{"dots and spaces", "a.b/c d/..//f", []string{"a.b", "c d", "..", ""}, []string{"a.b", "c d", "..", ""}},
		{"wildcards", "#*/%23/f#", []string{"#*", "%23"}, []string{"%23%22", "%23"}},
		{"escapes", `\u00e9\ud83c\udf00\/b/f`, []string{"é🌀", "b"}, []string{"é🌀", "b"}},
		{"not UTF-8", `a/\udcc3\udca9/f`, []string{"a", "\xed\xb3\x83\xed\xb2\xa9"}, []string{"a", "\xed\xb3\x83\xed\xb2\xa9"}},
		{"what fits in no key", "a/" + long + "/" + long + "/f", []string{"a", long}, []string{"a", long}},
		{"one that fits in no key", long + long + "/f", nil, nil},
		{"just fits before more", long + "/" + long[:54] + "/x/f", []string{long, long[:54]}, []string{long, long[:54]}},
		{"just fits", long + "/" + long[:54] + "/f", []string{long, long[:54]}, []string{long, long[:54]}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := decodeOne(t, SarraceniaOptions{}, recordWith(false, test.path, ""))
			if m.HasKey || !reflect.DeepEqual(m.Words, test.plain) {
				t.Errorf("plain: got %q, want %q", m.Words, test.plain)
			}
			m = decodeOne(t, SarraceniaOptions{}, recordWith(true, test.path, ""))
			if m.HasKey || !reflect.DeepEqual(m.Words, test.python) {
				t.Errorf("python: got %q, want %q", m.Words, test.python)
			}
		})
	}
}

func TestSarracenia_OwnTopic(t *testing.T) {
	const drop = `"_deleteOnPost": {"py/set": ["topic", "post_topic"]}, `
	long := strings.Repeat("k", 256)
	tests := []struct {
		name, fields string
		key          string
		own          bool
	}{
		{"none", ``, "", false},
		{"post_topic", drop + `"post_topic": "own.key"`, "own.key", true},
		{"empty post_topic", drop + `"post_topic": ""`, "", true},
		{"post_topic before topic", `"topic": "other", "post_topic": "own.key"`, "own.key", true},
		{"topic that is not stripped", `"topic": "own.key"`, "own.key", true},
		{"topic that is stripped", drop + `"topic": "own.key"`, "", false},
		{"longest", drop + `"post_topic": "` + long[1:] + `"`, long[1:], true},
		{"too long", drop + `"post_topic": "` + long + `"`, "", false},
		{"not UTF-8", drop + `"post_topic": "a\udce9"`, "", false},
		{"no string", drop + `"post_topic": ["a"]`, "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			line := recordWith(false, "a/f", strings.TrimRight(`, `+test.fields, ", "))
			m := decodeOne(t, SarraceniaOptions{}, line)
			if m.Key != test.key || m.HasKey != test.own || m.HasKey == (m.Words != nil) {
				t.Errorf("got key %q %v, words %q, want %q %v", m.Key, m.HasKey, m.Words, test.key, test.own)
			}
		})
	}
}

func TestSarracenia_Exchange(t *testing.T) {
	const three = `, "exchange": ["x0", "x1", "x2"]`
	tests := []struct {
		name, fields, want string
	}{
		{"none", ``, ""},
		{"post_exchange", `, "post_exchange": "x"` + three, "x"},
		{"post_exchange that is no string", `, "post_exchange": ["x"]`, ""},
		{"string: where it came from", `, "exchange": "upstream"`, ""},
		{"list of one", `, "exchange": ["x"]`, "x"},
		{"empty list", `, "exchange": []`, ""},
		{"list of others", `, "exchange": [1, null, {}]`, ""},
		{"several without identity", three, "x0"},
		{"several, identity a string", three + `, "identity": "cod,sha512"`, "x0"},
		{"several, sum 98", three + `, "identity": {"method": "md5", "value": "b"}`, "x2"},
		{"several, sum 97+10 with the line feed of sr3c", three + `, "identity": {"value": "a\n"}`, "x2"},
		{"several, sum 97+97", three + `, "identity": {"value": "aa"}`, "x2"},
		{"several, sum 99", three + `, "identity": {"value": "c"}`, "x0"},
		{"several, sum 97", three + `, "identity": {"value": "a"}`, "x1"},
	}
	for _, test := range tests {
		for _, marked := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				m := decodeOne(t, SarraceniaOptions{}, recordWith(marked, "a/f", test.fields))
				if m.Exchange != test.want {
					t.Errorf("got %q, want %q", m.Exchange, test.want)
				}
			})
		}
	}
}
