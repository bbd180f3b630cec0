package ingest

import (
	"bytes"
	"strings"

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

var sarraceniaKind = kind{
	name: "sarracenia",
	make: func(s Settings) (Format, error) {
		return NewSarracenia(SarraceniaOptions{TopicPrefix: s.TopicPrefix, MaxLine: s.MaxLine, Subjects: s.Subjects}), nil
	},
}

// Decode implements [Format]. Its cost is linear in len(data), whatever data
// holds.
func (f *Sarracenia) Decode(data []byte, at Position) Result {
	rec := newRecord(f.opts.MaxDepth)
	lines := lineDecoder{
		maxLine: f.opts.MaxLine,
		decode: func(m *queue.Message, raw, text []byte, at Position) string {
			return f.decode(m, rec, line{raw, text}, at)
		},
		torn: func(string) bool { return true },
	}
	return lines.run(data, at)
}

// line is a physical line, and what of it is its record.
type line struct{ raw, text []byte }

// decode fills in the message in a line, or returns the reason why there is none.
func (f *Sarracenia) decode(m *queue.Message, rec *record, l line, at Position) (reason string) {
	if reason := rec.parse(l.text); reason != "" {
		return reason
	}
	switch {
	case rec.isObject():
		return f.object(m, rec, l.raw, at)
	case rec.isRetry():
		return f.retry(m, rec)
	}
	return ReasonNotAnObject
}

// retry decodes a retry record of sarra v2.
func (f *Sarracenia) retry(m *queue.Message, rec *record) (reason string) {
	base, path, reason := v02FromRetry(m, rec)
	if reason == "" && f.opts.Subjects {
		m.Subject = retrySubject(m.Key, m.Headers, base, path)
	}
	return reason
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
	if m.Exchange = namedExchange(rec.members); len(m.Exchange) > maxShort {
		return ReasonExchangeTooLong
	}
	m.Words, m.Key, m.HasKey = route(rec.members, fields, marked)
	if f.opts.Subjects {
		m.Subject = recordSubject(m.Exchange, m.Key, fields)
	}

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
