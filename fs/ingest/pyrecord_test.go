package ingest

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// pyRecord is a python-marked record with the given fields after the mandatory
// ones, and pyBody the body that is published of it.
func pyRecord(deleteOnPost, fields string) string {
	return `{"py/object": "sarracenia.Message", ` + deleteOnPost +
		`"pubTime": "20261130T070000", "baseUrl": "x", "relPath": "a/f"` + fields + `, "__dict__": {}}`
}

func pyBody(fields string) string {
	return `{"pubTime": "20261130T070000", "baseUrl": "x", "relPath": "a/f"` + fields + `}`
}

func TestSarracenia_PythonFields(t *testing.T) {
	tests := []struct {
		name, list, fields, want string
	}{
		{"set", `"_deleteOnPost": {"py/set": ["a", "b"]},`, `, "a": 1, "c": 2, "b": 3`, `, "c": 2`},
		{"tuple", `"_deleteOnPost": {"py/tuple": ["a"]},`, `, "a": 1, "c": 2`, `, "c": 2`},
		{"plain list", `"_deleteOnPost": ["a"],`, `, "a": 1, "c": 2`, `, "c": 2`},
		{"list with rubbish", `"_deleteOnPost": [0, "a", ["c"], null],`, `, "a": 1, "c": 2`, `, "c": 2`},
		{"empty list", `"_deleteOnPost": [],`, `, "topic": "k", "exchange": "x"`, `, "topic": "k", "exchange": "x"`},
		{"no list", ``, `, "topic": "k", "exchange": "x", "new_dir": "/d", "ack_id": 7, "c": 2`, `, "c": 2`},
		{"list that is none", `"_deleteOnPost": "a",`, `, "a": 1, "topic": "k"`, `, "a": 1`},
		{"underscores and tags always", `"_deleteOnPost": [],`, `, "_x": 1, "py/y": 2, "c_": 3`, `, "c_": 3`},
		{"names with escapes", `"_deleteOnPost": ["\u0061"],`, `, "a": 1, "\u005fx": 2, "\u0063": 3`, `, "\u0063": 3`},
		{"last of a name in the place of the first", `"_deleteOnPost": ["a"],`,
			`, "c": 1, "d": 2, "c": 3, "a": 4, "a": 5`, `, "c": 3, "d": 2`},
		{"texts as they stand", ``, `, "n" :1e9999 ,"s":"\u00e9\udce9\/", "o": { "k":[ 1 ] }`,
			`, "n": 1e9999, "s": "\u00e9\udce9\/", "o": { "k":[ 1 ] }`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := decodeOne(t, SarraceniaOptions{}, pyRecord(test.list, test.fields))
			if got, want := string(m.Body), pyBody(test.want); got != want || m.Reason != "" {
				t.Errorf("%s\n got %s\nwant %s", m.Reason, got, want)
			}
			if m.Headers == nil || len(m.Headers) != 0 {
				t.Errorf("headers %v, want an empty table", m.Headers)
			}
		})
	}
}

func TestSarracenia_StrippedMandatory(t *testing.T) {
	m := decodeOne(t, SarraceniaOptions{}, pyRecord(`"_deleteOnPost": ["baseUrl"],`, ""))
	if m.Reason != "missing-baseUrl" {
		t.Errorf("reason %q, want missing-baseUrl", m.Reason)
	}
}

func TestSarracenia_UnmarkedIsNotStripped(t *testing.T) {
	line := recordWith(false, "a/f", `, "exchange": "x", "_x": 1, "new_dir": "/d", "o": {"py/id": 7}`)
	m := decodeOne(t, SarraceniaOptions{}, line)
	if string(m.Body) != line+"\n" || m.Headers != nil {
		t.Errorf("got %q, headers %v, want the line as it is", m.Body, m.Headers)
	}
}

func TestSarracenia_PythonTags(t *testing.T) {
	const bad = ReasonUnresolvable
	tests := []struct {
		name, fields, want, reason string
	}{
		{"set", `, "a": {"py/set": [1, {"k": 2}]}`, `, "a": [1, {"k": 2}]`, ""},
		{"tuples within", `, "a": { "py/tuple" : [ {"py/tuple": []}, "{" ] } `, `, "a": [ [], "{" ]`, ""},
		{"list", `, "a": [1, 2], "b": {"py/id": 1}`, `, "a": [1, 2], "b": [1, 2]`, ""},
		{"object", `, "a": {"k": "v"}, "b": [{"py/id": 1}]`, `, "a": {"k": "v"}, "b": [{"k": "v"}]`, ""},
		{"within one field", `, "a": [[7], {"py/id": 2}]`, `, "a": [[7], [7]]`, ""},
		{"private fields count", `, "exchange": ["x"], "a": [2], "new_dir": {}, "b": {"py/id": 2}, "c": {"py/id": 3}`,
			`, "a": [2], "b": [2], "c": {}`, ""},
		{"sets and references do not count", `, "a": {"py/set": [[1]]}, "b": {"py/id": 1}, "c": [3], "d": {"py/id": 2}`,
			`, "a": [[1]], "b": [1], "c": [3], "d": [3]`, ""},
		{"reference to a reference", `, "a": [1], "b": [{"py/id": 1}], "c": {"py/id": 2}`,
			`, "a": [1], "b": [[1]], "c": [[1]]`, ""},
		{"last of a name counts, in the place of the first", `, "a": [1], "b": [2], "a": [3], "c": [{"py/id": 1}, {"py/id": 2}]`,
			`, "a": [3], "b": [2], "c": [[3], [2]]`, ""},
		{"strings are no tags", `, "a": ["py/id", "{\"py/id\": 1}"], "b": {"py/id": 1}`,
			`, "a": ["py/id", "{\"py/id\": 1}"], "b": ["py/id", "{\"py/id\": 1}"]`, ""},
		{"tag with escapes", `, "a": [1], "b": {"\u0070y\/id": 1}`, `, "a": [1], "b": [1]`, ""},
		{"harmless in a private field", `, "exchange": {"py/id": 99}, "a": {"py/set": []}`, `, "a": []`, ""},
		{"numbers unknown after that", `, "exchange": {"py/object": "x"}, "a": [1], "b": {"py/id": 1}`, "", bad},
		{"the message itself", `, "a": {"py/id": 0}`, "", bad},
		{"around itself", `, "a": [{"py/id": 1}]`, "", bad},
		{"forward", `, "a": {"py/id": 1}, "b": [1]`, "", bad},
		{"nothing of that number", `, "a": [1], "b": {"py/id": 2}`, "", bad},
		{"huge number", `, "a": [1], "b": {"py/id": 99999999999999999999}`, "", bad},
		{"no number", `, "a": [1], "b": {"py/id": "1"}`, "", bad},
		{"negative number", `, "a": [1], "b": {"py/id": -1}`, "", bad},
		{"broken number", `, "a": [1], "b": {"py/id": 1.0}`, "", bad},
		{"set of no list", `, "a": {"py/set": 1}`, "", bad},
		{"set and more", `, "a": {"py/set": [], "k": 1}`, "", bad},
		{"reference and more", `, "a": [], "b": {"py/id": 1, "k": 1}`, "", bad},
		{"more and set", `, "a": {"k": 1, "py/set": []}`, "", bad},
		{"other tag", `, "a": {"py/b64": "AAAA"}`, "", bad},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := decodeOne(t, SarraceniaOptions{}, pyRecord("", test.fields))
			if m.Reason != test.reason {
				t.Fatalf("reason %q, want %q", m.Reason, test.reason)
			}
			if got, want := string(m.Body), pyBody(test.want); got != want && test.reason == "" {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

// TestSarracenia_Jsonpickle compares with what jsonpickle itself makes of records
// with shared values, byte for byte.
func TestSarracenia_Jsonpickle(t *testing.T) {
	records, err := os.ReadFile("testdata/jsonpickle/records")
	if err != nil {
		t.Fatal(err)
	}
	bodies, err := os.ReadFile("testdata/jsonpickle/bodies")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(bodies)), "\n")
	res := NewSarracenia(SarraceniaOptions{}).Decode(records, Position{})
	if len(res.Messages) != len(want) {
		t.Fatalf("%d messages, want %d", len(res.Messages), len(want))
	}
	for i, m := range res.Messages {
		if string(m.Body) != want[i] {
			t.Errorf("line %d: %s\n got %s\nwant %s", m.Line, m.Reason, m.Body, want[i])
		}
	}
}

func TestSarracenia_PythonTagsAreBounded(t *testing.T) {
	// Each field holds the one before it twice, or once but deeper.
	doubling, nesting := `, "f1": [0]`, `, "f1": [0]`
	for i := 2; i <= 100; i++ {
		doubling += fmt.Sprintf(`, "f%d": [{"py/id": %d}, {"py/id": %d}]`, i, i-1, i-1)
		nesting += fmt.Sprintf(`, "f%d": [{"py/id": %d}]`, i, i-1)
	}
	tests := []struct {
		name, fields string
		opts         SarraceniaOptions
		reason       string
	}{
		{"doubling", doubling, SarraceniaOptions{MaxLine: 1 << 20}, ReasonTooLong},
		{"nesting", nesting, SarraceniaOptions{MaxDepth: 100}, ReasonTooDeep},
		{"nesting within the limit", nesting, SarraceniaOptions{MaxDepth: 101}, ""},
		{"many arrays", `, "f": [` + strings.Repeat("[],", maxNumbered) + `{"py/id": 5}]`, SarraceniaOptions{}, ReasonUnresolvable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			line := pyRecord("", test.fields)
			allocated := allocatedBytes(func() {
				if m := decodeOne(t, test.opts, line); m.Reason != test.reason {
					t.Errorf("reason %q, want %q", m.Reason, test.reason)
				}
			})
			if limit := uint64(200 << 20); allocated > limit {
				t.Errorf("allocated %d bytes, want at most %d", allocated, limit)
			}
		})
	}
}

func TestMembers_Unique(t *testing.T) {
	ms, index := objectMembers([]byte(`{"a": 1, "b": 2, "\u0061": 3, "b": 4, "c": 5}`)).unique()
	if got, want := string(ms.render()), `{"a": 3, "b": 4, "c": 5}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := map[string]int{"a": 0, "b": 1, "c": 2}; !reflect.DeepEqual(index, want) {
		t.Errorf("index %v, want %v", index, want)
	}
}
