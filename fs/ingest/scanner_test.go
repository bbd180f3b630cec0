package ingest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// accepts reports whether the scanner takes text for one JSON value.
func accepts(text []byte) bool {
	s := scanner{text: text, maxDepth: 10000} // as encoding/json
	return s.value() == "" && s.atEnd()
}

var jsonTexts = []string{
	``, ` `, `0`, `-0`, `-`, `01`, `1.`, `.5`, `1.5e`, `1e+`, `1e-07`, `1E5`, `+1`, `1e9999`, `0x1`, `NaN`, `-Infinity`,
	`true`, `tru`, `truex`, `false`, `null`, `nul`, `nulll`,
	`"`, `""`, `"a`, `"\`, `"\"`, `"\u12"`, `"\u12g4"`, `"\uDCE9"`, `"\x"`, `"\/\b\f\n\r\t"`, "\"\t\"", "\"\x7f\"", "\"\xff\"",
	`[`, `]`, `[]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[[],[[]]]`, `[}`, `[1}`, `{]`,
	`{`, `}`, `{}`, `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1}`, `{"a":1,}`, `{a:1}`, `{1:1}`, `{"a" : {"b":[{}, {}]} , "c":""}`,
	`{"a":1 "b":2}`, `{"a":1}}`, `{"a":1}x`, ` [ ] `, `[1]2`, `"a" "b"`, "[1,\n2]", "[1,\v2]",
}

func TestScanner_AgreesWithEncodingJSON(t *testing.T) {
	for _, text := range jsonTexts {
		if got, want := accepts([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("%q: accepted %v, want %v", text, got, want)
		}
	}
}

func FuzzScanner_AgreesWithEncodingJSON(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.IndexByte(text, 0) >= 0 {
			return // refused before the scanner sees it
		}
		if got, want := accepts(text), json.Valid(text); got != want {
			t.Errorf("%q: accepted %v, want %v", text, got, want)
		}
	})
}

func TestUnquote(t *testing.T) {
	tests := []struct {
		quoted, want string
	}{
		{`""`, ""},
		{`"plain é"`, "plain é"},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"a\u00e9\u00E9z"`, "aééz"},
		{`"\ud83c\udf00"`, "🌀"},
		{`"\u0000"`, "\x00"},
		{`"\uffff"`, "\uffff"},
		{`"\udce9"`, "\xed\xb3\xa9"},
		{`"\ud83c"`, "\xed\xa0\xbc"},
		{`"\ud83cx"`, "\xed\xa0\xbcx"},
		{`"\ud83c\u0041"`, "\xed\xa0\xbcA"},
		{`"\ud83c\ud83c\udf00"`, "\xed\xa0\xbc🌀"},
		{`"\udf00\ud83c"`, "\xed\xbc\x80\xed\xa0\xbc"},
		{`"\udcc3\udca9"`, "\xed\xb3\x83\xed\xb2\xa9"},
	}
	for _, test := range tests {
		quoted := []byte(test.quoted)
		if got := string(unquote(quoted)); got != test.want {
			t.Errorf("%s: got %q, want %q", test.quoted, got, test.want)
		}
		if string(quoted) != test.quoted {
			t.Errorf("%s was changed to %s", test.quoted, quoted)
		}
		var want string
		if err := json.Unmarshal(quoted, &want); err != nil {
			t.Errorf("%s is not a JSON string: %v", test.quoted, err)
		} else if !strings.Contains(want, "\ufffd") && want != test.want {
			t.Errorf("%s: encoding/json says %q", test.quoted, want)
		}
	}
}
