package ingest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"spoolfs/queue"
)

// AMQP decodes files of one message a line, each a JSON object with all that AMQP
// can say of it:
//
//	exchange     its exchange, instead of the route's; the configuration has to
//	             allow it
//	routing_key  its routing key
//	headers      its header table, see below
//	properties   content_type, content_encoding, correlation_id, reply_to,
//	             expiration, type and app_id (strings), priority (0 to 255),
//	             timestamp (seconds since 1970), delivery_mode (1 or 2)
//	subject      what it is about: see subject
//	body         its body, as text; or
//	body_base64  in base64
//
// Only one of the last two must be there. Of headers, whole numbers must fit into
// 64 bits and others into a double; arrays and objects are arrays and tables of
// AMQP, and a string is UTF-8. Nothing is guessed: a key that is not known, or that
// is there twice, and a value that AMQP cannot carry make a dead letter that says
// so.
type AMQP struct {
	maxLine  int
	subjects bool
}

var _ Format = (*AMQP)(nil)

var amqpKind = kind{
	name: "amqp",
	make: func(s Settings) (Format, error) {
		f := NewAMQP(s.MaxLine)
		f.subjects = s.Subjects
		return f, nil
	},
}

// NewAMQP returns a decoder. Lines beyond maxLine bytes are dead letters; 0 is 16
// MiB.
func NewAMQP(maxLine int) *AMQP {
	if maxLine <= 0 {
		maxLine = 16 << 20
	}
	return &AMQP{maxLine: maxLine}
}

// Whole implements [Format].
func (*AMQP) Whole() bool { return false }

// Decode implements [Format].
func (f *AMQP) Decode(data []byte, at Position) Result {
	rec := newRecord(1 + 1 + maxNesting) // the record, its headers, and what is in them
	lines := lineDecoder{
		maxLine: f.maxLine,
		decode: func(m *queue.Message, _, text []byte, _ Position) string {
			reason := decodeAMQP(m, rec, text)
			if !f.subjects {
				m.Subject = ""
			}
			return reason
		},
		torn: func(reason string) bool { return reason == ReasonNotJSON || reason == ReasonNotUTF8 },
	}
	return lines.run(data, at)
}

func decodeAMQP(m *queue.Message, rec *record, text []byte) (reason string) {
	if reason := rec.parse(text); reason != "" {
		return reason
	}
	if !rec.isObject() {
		return ReasonNotAnObject
	}
	if name, twice := rec.members.twice(); twice {
		return ReasonKeyTwice + fmt.Sprintf("%.40q", name)
	}
	m.HasKey = true
	hasBody := false
	for _, field := range rec.members {
		if reason := setAMQP(m, field); reason != "" {
			return reason
		}
		if name := string(field.name); name == "body" || name == "body_base64" {
			if hasBody {
				return ReasonKeyTwice + "body and body_base64"
			}
			hasBody = true
		}
	}
	if !hasBody {
		return ReasonMissing + "body"
	}
	return ""
}

// setAMQP sets what a member of a record says.
func setAMQP(m *queue.Message, field member) (reason string) {
	switch name := string(field.name); name {
	case "exchange":
		m.Exchange, reason = shortValue(name, field.value)
		if reason == "" && m.Exchange == "" {
			return ReasonWrongType + "exchange: it is empty; without the key it is that of the route"
		}
		return reason
	case "routing_key":
		m.Key, reason = shortValue(name, field.value)
		return reason
	case "subject":
		text, reason := textValue(name, field.value)
		if reason == "" && text != "" {
			m.Subject = subject(text)
		}
		return reason
	case "headers":
		m.Headers, reason = amqpHeaders(field.value)
		return reason
	case "properties":
		return setProperties(m, field.value)
	case "body", "body_base64":
		m.Body, reason = amqpBody(name, field.value)
		return reason
	default:
		return ReasonUnknownKey + fmt.Sprintf("%.40q", name)
	}
}

func amqpBody(name string, value []byte) (body []byte, reason string) {
	text, reason := textValue(name, value)
	if reason != "" || name == "body" {
		return []byte(text), reason
	}
	body, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return nil, ReasonBadBase64
	}
	return body, ""
}

// textValue is a string.
func textValue(name string, value []byte) (text, reason string) {
	raw, ok := stringValue(value)
	switch {
	case !ok:
		return "", ReasonWrongType + name
	case !utf8.Valid(raw):
		// Half of a surrogate pair, which stands for no character.
		return "", ReasonBadText + name
	}
	return string(raw), ""
}

// shortValue is a string that AMQP has as a short one.
func shortValue(name string, value []byte) (text, reason string) {
	text, reason = textValue(name, value)
	switch {
	case reason != "":
		return "", reason
	case len(text) > maxShort:
		return "", tooLong(strings.ReplaceAll(name, "_", "-"), len(text), maxShort)
	case strings.Contains(text, "\x00"):
		return "", ReasonBadText + name + ": a NUL"
	}
	return text, ""
}

// twice returns a name that occurs more than once.
func (ms members) twice() (name string, twice bool) {
	if len(ms) <= 8 { // without a map for the few that a record has
		for i, m := range ms {
			for _, other := range ms[:i] {
				if string(other.name) == string(m.name) {
					return string(m.name), true
				}
			}
		}
		return "", false
	}
	seen := make(map[string]bool, len(ms))
	for _, m := range ms {
		if seen[string(m.name)] {
			return string(m.name), true
		}
		seen[string(m.name)] = true
	}
	return "", false
}
