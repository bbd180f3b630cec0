package ingest

import (
	"bytes"
	"time"

	"spoolfs/queue"
)

// checkMandatory checks the three fields that every subscriber needs, and
// returns the time of publication.
func checkMandatory(fields members) (time.Time, string) {
	var pubTime []byte
	for _, name := range [...]string{"pubTime", "baseUrl", "relPath"} {
		value, ok := fields.last(name)
		if !ok {
			return time.Time{}, ReasonMissing + name
		}
		text, ok := stringValue(value)
		if !ok {
			return time.Time{}, ReasonWrongType + name
		}
		if name == "pubTime" {
			pubTime = text
		}
	}
	t, ok := parsePubTime(pubTime)
	if !ok {
		return t, ReasonBadPubTime
	}
	return t, ""
}

// encodeV03 completes a message that is published as JSON: the very bytes of an
// unmarked line, and what is left of a python-marked one.
func encodeV03(m *queue.Message, fields members, marked bool, text, raw []byte) {
	m.ContentType, m.ContentEncoding = "application/json", "utf-8"
	if marked {
		// sr3 always sends a header table and no newline; sr3c neither.
		m.Headers = []queue.Header{}
		m.Body = fields.render()
		return
	}
	m.Body = lineBody(text, raw)
}

// lineBody copies the text of a line and its LF, if it has one.
func lineBody(text, raw []byte) []byte {
	if !bytes.HasSuffix(raw, []byte("\n")) {
		return bytes.Clone(text)
	}
	body := make([]byte, len(text)+1)
	body[copy(body, text)] = '\n'
	return body
}
