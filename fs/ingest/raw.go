package ingest

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"spoolfs/queue"
)

// Raw is the format in which the file is the message: its body is the bytes of
// the file, whatever they are. Routing key and headers come from templates, and
// the content type from the extension of the name.
type Raw struct {
	key         template
	headers     []rawHeader
	contentType string
	subjects    bool
}

var _ Format = (*Raw)(nil)

// rawHeader is a header whose value is a template.
type rawHeader struct {
	name  string
	value template
}

var rawKind = kind{
	name:  "raw",
	takes: []string{"routing_key", "header", "content_type"},
	make:  func(s Settings) (Format, error) { return newRaw(s) },
}

// NewRaw returns a decoder that gives all messages the same routing key.
func NewRaw(key string) *Raw { return &Raw{key: template{{text: key}}} }

// newRaw returns a decoder, or a [SettingError].
func newRaw(s Settings) (*Raw, error) {
	if s.RoutingKey == "" {
		return nil, badSetting("routing_key", `it is missing: say what files of format raw are published under, such as "${dir}.${base}"`)
	}
	f := &Raw{contentType: s.ContentType, subjects: s.Subjects}
	var err error
	if f.key, err = parseTemplate(s.RoutingKey); err != nil {
		return nil, badSetting("routing_key", "%v", err)
	}
	if n := f.key.length(); n > maxShort {
		return nil, badSetting("routing_key", "it has %d bytes: AMQP takes %d", n, maxShort)
	}
	if len(s.ContentType) > maxShort {
		return nil, badSetting("content_type", "it has %d bytes: AMQP takes %d", len(s.ContentType), maxShort)
	}
	return f, f.setHeaders(s.Headers)
}

func (f *Raw) setHeaders(headers []string) error {
	seen := map[string]bool{}
	size := tableOverhead
	for _, text := range headers {
		name, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || name == "":
			return badSetting("header", "%q: want NAME=VALUE", text)
		case len(name) > maxShort || !utf8.ValidString(name):
			return badSetting("header", "%.40q…: a name has at most %d bytes of UTF-8", name, maxShort)
		case isRoutingHeader(name):
			return badSetting("header", "%q: RabbitMQ reads further routing keys from it", name)
		case seen[name]:
			return badSetting("header", "%q is given twice", name)
		}
		seen[name] = true
		t, err := parseTemplate(value)
		if err != nil {
			return badSetting("header", "%q: %v", name, err)
		}
		size += headerOverhead + len(name) + t.length()
		f.headers = append(f.headers, rawHeader{name, t})
	}
	if size > maxHeaders {
		return badSetting("header", "all headers have %d bytes, at most %d", size, maxHeaders)
	}
	return nil
}

// length is that of the text that does not depend on the file.
func (t template) length() int {
	n := 0
	for _, p := range t {
		n += len(p.text)
	}
	return n
}

// Uses reports whether a field of the origin stands in a template.
func (f *Raw) Uses(field string) bool {
	for _, h := range f.headers {
		if h.value.uses(field) {
			return true
		}
	}
	return f.key.uses(field)
}

// Whole implements [Format].
func (*Raw) Whole() bool { return true }

// Decode implements [Format]. All of the file is in the tail, since any byte that
// comes later would still belong to it.
func (f *Raw) Decode(data []byte, at Position) Result {
	if len(data) == 0 {
		return Result{}
	}
	m := &queue.Message{Line: 1, Body: bytes.Clone(data)}
	key := f.key.expand(&at.Origin)
	headers, size := f.expandHeaders(&at.Origin)
	switch {
	case len(key) > maxShort:
		m.Reason = tooLong("routing-key", len(key), maxShort)
	case size > maxHeaders:
		m.Reason = tooLong("headers", size, maxHeaders)
	default:
		m.Key, m.HasKey, m.Headers = key, true, headers
		if f.subjects {
			m.Subject = subject(at.Origin.Path)
		}
		m.ContentType = f.contentType
		if m.ContentType == "" {
			m.ContentType = contentType(at.Origin.field("name"))
		}
	}
	return Result{Tail: m}
}

func (f *Raw) expandHeaders(o *Origin) (headers []queue.Header, size int) {
	size = tableOverhead
	for _, h := range f.headers {
		value := h.value.expand(o)
		headers = append(headers, queue.Header{Name: h.name, Value: value})
		size += headerOverhead + len(h.name) + len(value)
	}
	return headers, size
}

func tooLong(what string, size, limit int) string {
	return fmt.Sprintf("%s-too-long: %d bytes, at most %d", what, size, limit)
}
