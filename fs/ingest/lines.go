package ingest

import (
	"bytes"
	"unicode/utf8"

	"spoolfs/queue"
)

// lineDecoder decodes data with a record a line. It serves one call of
// [Format.Decode].
type lineDecoder struct {
	// maxLine is the length in bytes beyond which a line is a dead letter.
	maxLine int

	// decode fills in the message in a line: raw is all of it, and text what its
	// record is. It returns the reason why there is none.
	decode func(m *queue.Message, raw, text []byte, at Position) (reason string)

	// torn reports whether a last line without newline that is refused for a
	// reason may be the beginning of one.
	torn func(reason string) bool
}

// run decodes the lines of data. Its cost is linear in len(data), if that of
// decode is.
func (d *lineDecoder) run(data []byte, at Position) Result {
	// Most lines are longer than that.
	res := Result{Messages: make([]queue.Message, 0, min(bytes.Count(data, []byte("\n")), len(data)/64))}
	for {
		rest := data[res.Consumed:]
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			res.Tail = d.tail(rest, at)
			if len(res.Messages) == 0 {
				res.Messages = nil
			}
			return res
		}
		res.Messages = append(res.Messages, queue.Message{})
		last := len(res.Messages) - 1
		if skip := d.line(&res.Messages[last], rest[:n], at); skip != "" {
			res.Messages = res.Messages[:last]
			res.count(skip)
		}
		at.Line++
		res.Consumed += n
		res.Lines++
	}
}

// tail decodes the bytes after the last newline.
func (d *lineDecoder) tail(raw []byte, at Position) *queue.Message {
	m := new(queue.Message)
	if d.line(m, raw, at) != "" {
		return nil
	}
	switch m.Reason {
	case "", ReasonNulOnly, ReasonTooLong:
		// Whole, or beyond repair.
	default:
		if d.torn(m.Reason) {
			m.Reason = ReasonTornLastLine
		}
	}
	return m
}

// line decodes one physical line, its line end included. It says why, if the line
// needs nothing.
func (d *lineDecoder) line(m *queue.Message, raw []byte, at Position) (skip string) {
	text, reason := lineText(raw, at.Line == 0, d.maxLine)
	if reason == "" {
		reason = d.decode(m, raw, text, at)
	}
	switch reason {
	case "":
	case skipBlank, skipDone, skipRepeated:
		return reason
	default:
		*m = queue.Message{Reason: reason, Body: bytes.Clone(raw)}
	}
	m.Line = uint32(at.Line) + 1
	return ""
}

// lineText strips from a line what is not part of its record, and refuses what
// cannot be JSON.
func lineText(raw []byte, first bool, maxLine int) (text []byte, reason string) {
	text, ended := bytes.CutSuffix(raw, []byte("\n"))
	if ended {
		text = bytes.TrimSuffix(text, []byte("\r"))
	}
	if first {
		text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	}
	if isBlank(text) {
		return nil, skipBlank
	}
	text = bytes.Trim(text, "\x00")
	switch {
	case isBlank(text):
		return nil, ReasonNulOnly
	case len(text) > maxLine:
		return nil, ReasonTooLong
	case bytes.IndexByte(text, 0) >= 0:
		return nil, ReasonNulInside
	case !utf8.Valid(text):
		return nil, ReasonNotUTF8
	}
	return text, ""
}

func isBlank(text []byte) bool {
	return len(bytes.TrimLeft(text, " \t\r\v\f")) == 0
}
