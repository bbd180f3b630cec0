package ingest

import (
	"bytes"
	"encoding/hex"
	"iter"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions of this file read the text of JSON values that a scanner has
// found to be well formed.

// stringValue returns what a value means if it is a string.
func stringValue(value []byte) ([]byte, bool) {
	if len(value) == 0 || value[0] != '"' {
		return nil, false
	}
	return unquote(value), true
}

// elements yields the texts of the elements of a value if it is an array.
func elements(value []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(value) == 0 || value[0] != '[' {
			return
		}
		s := scanner{text: value, maxDepth: math.MaxInt}
		s.array(func(element []byte) string {
			if !yield(element) {
				return ReasonTooManyFields
			}
			return ""
		})
	}
}

// stringElements yields the strings in a value if it is an array.
func stringElements(value []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for element := range elements(value) {
			if text, ok := stringValue(element); ok && !yield(text) {
				return
			}
		}
	}
}

// objectMembers returns the members of a value if it is an object, but not many
// more than maxFields.
func objectMembers(value []byte) members {
	if len(value) == 0 || value[0] != '{' {
		return nil
	}
	var ms members
	s := scanner{text: value, maxDepth: math.MaxInt}
	s.object(func(m member) string {
		ms = append(ms, m)
		if len(ms) > maxFields {
			return ReasonTooManyFields
		}
		return ""
	})
	return ms
}

// unquote returns the bytes that a JSON string stands for. Half of a surrogate
// pair, by which python spells a byte that is not UTF-8, becomes three bytes
// that are not UTF-8 either, whatever stands beside it. The result may be a
// part of quoted.
func unquote(quoted []byte) []byte {
	text := quoted[1 : len(quoted)-1]
	i := bytes.IndexByte(text, '\\')
	if i < 0 {
		return text
	}
	out := append(make([]byte, 0, len(text)), text[:i]...)
	for i < len(text) {
		if text[i] != '\\' {
			out = append(out, text[i])
			i++
			continue
		}
		r, n := unescape(text[i:])
		out = appendRune(out, r)
		i += n
	}
	return out
}

// unescape reads the escape sequence at the beginning of text, or the two that
// make a surrogate pair.
func unescape(text []byte) (r rune, n int) {
	switch c := text[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unescapeUnicode(text)
	default:
		return rune(c), 2
	}
}

func unescapeUnicode(text []byte) (r rune, n int) {
	r, _ = hex4(text[2:])
	if utf16.IsSurrogate(r) && bytes.HasPrefix(text[6:], []byte(`\u`)) {
		low, _ := hex4(text[8:])
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return r, 6
}

// appendRune is utf8.AppendRune, but spells a surrogate by the same scheme
// where that writes the replacement character.
func appendRune(out []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(out, r)
}

// hex4 reads four hexadecimal digits.
func hex4(text []byte) (rune, bool) {
	var b [2]byte
	if len(text) < 4 {
		return 0, false
	}
	if _, err := hex.Decode(b[:], text[:4]); err != nil {
		return 0, false
	}
	return rune(b[0])<<8 | rune(b[1]), true
}
