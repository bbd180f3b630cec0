package ingest

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"spoolfs/queue"
)

// maxV02Header is the length in bytes of the longest header value that v02
// receivers take.
const maxV02Header = 254

// encodeV02 completes a message that is published in the old format: three
// words as text and everything else as headers. It does what sr3 does, and also
// names the target of a link, which sr3 forgets.
func encodeV02(m *queue.Message, fields members) (reason string) {
	fields, _ = fields.unique()
	m.ContentType, m.ContentEncoding = "text/plain", "utf-8"
	m.Body = v02Notice(fields)

	table := make(headerTable, 0, len(fields))
	for _, field := range fields {
		switch name := string(field.name); name {
		case "pubTime", "baseUrl", "relPath", "fileOp", "size", "blocks", "content", "identity", "integrity", "_format":
		case "atime", "mtime":
			table.add(name, strings.ReplaceAll(headerText(field.value), "T", ""))
		default:
			table.add(name, headerText(field.value))
		}
	}
	if reason := table.setParts(fields); reason != "" {
		return reason
	}
	if reason := table.setSum(fields); reason != "" {
		return reason
	}
	table.setFileOp(fields)
	m.Headers = table
	return checkV02(m)
}

// v02Notice is the body: time, URL and path, with what would end a word in the
// path quoted.
func v02Notice(fields members) []byte {
	var words [3][]byte
	for i, name := range [...]string{"pubTime", "baseUrl", "relPath"} {
		value, _ := fields.last(name)
		words[i], _ = stringValue(value)
	}
	words[0] = bytes.ReplaceAll(words[0], []byte("T"), nil)
	words[2] = bytes.ReplaceAll(words[2], []byte(" "), []byte("%20"))
	words[2] = bytes.ReplaceAll(words[2], []byte("#"), []byte("%23"))
	return bytes.Join(words[:], []byte(" "))
}

// headerText is a value as a header: a string without its quotes, anything else
// as it stands.
func headerText(value []byte) string {
	if text, ok := stringValue(value); ok {
		return string(text)
	}
	return string(value)
}

// checkV02 refuses what receivers of v02, or AMQP, cannot take.
func checkV02(m *queue.Message) (reason string) {
	if !utf8.Valid(m.Body) {
		return ReasonV02NotUTF8
	}
	for _, h := range m.Headers {
		if len(h.Name) > maxV02Header || len(h.Value) > maxV02Header {
			return ReasonV02HeaderTooLong
		}
		if !utf8.ValidString(h.Name) || !utf8.ValidString(h.Value) {
			return ReasonV02NotUTF8
		}
	}
	return ""
}
