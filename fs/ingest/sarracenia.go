package ingest

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"spoolfs/queue"
)

// Sarracenia decodes files of one Sarracenia record a line: the v03 messages of
// sr3c, the retry files of sr3 (jsonpickle) and those of sarra v2. They may be
// mixed, since people merge such files by hand.
type Sarracenia struct {
	opts SarraceniaOptions
}

var _ Format = (*Sarracenia)(nil)

// NewSarracenia returns a decoder, which any number of goroutines may use.
func NewSarracenia(opts SarraceniaOptions) *Sarracenia {
	opts.ensureDefaults()
	return &Sarracenia{opts: opts}
}

// Whole implements [Format].
func (*Sarracenia) Whole() bool { return false }

// Decode implements [Format]. Its cost is linear in len(data), whatever data
// holds.
func (f *Sarracenia) Decode(data []byte, at Position) Result {
	rec := newRecord(f.opts.MaxDepth)
	// Most lines are longer than that.
	res := Result{Messages: make([]queue.Message, 0, min(bytes.Count(data, []byte("\n")), len(data)/64))}
	for {
		rest := data[res.Consumed:]
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			res.Tail = f.tail(rec, rest, at)
			if len(res.Messages) == 0 {
				res.Messages = nil
			}
			return res
		}
		res.Messages = append(res.Messages, queue.Message{})
		last := len(res.Messages) - 1
		if skip := f.line(&res.Messages[last], rec, rest[:n], at); skip != "" {
			res.Messages = res.Messages[:last]
			res.count(skip)
		}
		at.Line++
		res.Consumed += n
		res.Lines++
	}
}

// tail decodes the bytes after the last newline.
func (f *Sarracenia) tail(rec *record, raw []byte, at Position) *queue.Message {
	m := new(queue.Message)
	if f.line(m, rec, raw, at) != "" {
		return nil
	}
	switch m.Reason {
	case "", ReasonNulOnly, ReasonTooLong:
		// Whole, or beyond repair.
	default:
		m.Reason = ReasonTornLastLine
	}
	return m
}

// line decodes one physical line, its line end included. It says why, if the line
// needs nothing.
func (f *Sarracenia) line(m *queue.Message, rec *record, raw []byte, at Position) (skip string) {
	switch reason := f.decode(m, rec, raw, at); reason {
	case "":
	case skipBlank, skipDone, skipRepeated:
		return reason
	default:
		*m = queue.Message{Reason: reason, Body: bytes.Clone(raw)}
	}
	m.Line = uint32(at.Line) + 1
	return ""
}

// decode fills in the message in a line, or returns the reason why there is none.
func (f *Sarracenia) decode(m *queue.Message, rec *record, raw []byte, at Position) (reason string) {
	text, reason := f.text(raw, at.Line == 0)
	if reason != "" {
		return reason
	}
	if reason := rec.parse(text); reason != "" {
		return reason
	}
	switch {
	case rec.isObject():
		return f.object(m, rec, raw, at)
	case rec.isRetry():
		return v02FromRetry(m, rec)
	}
	return ReasonNotAnObject
}

// text strips from a line what is not part of its record, and refuses what
// cannot be JSON.
func (f *Sarracenia) text(raw []byte, first bool) (text []byte, reason string) {
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
	case len(text) > f.opts.MaxLine:
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

// object decodes a record that is a JSON object: v03 fields, with or without
// what sr3 keeps beside them.
func (f *Sarracenia) object(m *queue.Message, rec *record, raw []byte, at Position) (reason string) {
	fields, marked := rec.members, rec.members.marked()
	if marked {
		if at.Seen.repeats(rec.text, at.Line, bytes.HasSuffix(raw, []byte("\n"))) {
			return skipRepeated
		}
		if fields, reason = publicMembers(rec, f.opts.MaxLine); reason != "" {
			return reason
		}
	}
	if m.PubTime, reason = checkMandatory(fields); reason != "" {
		return reason
	}
	if m.Exchange = namedExchange(rec.members); len(m.Exchange) > maxKey {
		return ReasonExchangeTooLong
	}
	m.Words, m.Key, m.HasKey = route(rec.members, fields, marked)

	switch f.wireFormat(rec.members) {
	case "v03":
		encodeV03(m, fields, marked, rec.text, raw)
	case "v02":
		reason = encodeV02(m, fields)
	case "wis":
		m.Words, m.Key, m.HasKey = nil, wisKey(rec.members, fields), true
		encodeWIS(m, fields, wisID(at.File.MessageID(uint32(at.Line)+1)))
	default:
		reason = ReasonUnknownFormat
	}
	return reason
}

// wireFormat is the format in which a record asks to be published.
func (f *Sarracenia) wireFormat(all members) string {
	if value, ok := all.last("_format"); ok {
		name, _ := stringValue(value)
		return string(name)
	}
	if strings.HasPrefix(f.opts.TopicPrefix, "v02") {
		return "v02"
	}
	return "v03"
}
