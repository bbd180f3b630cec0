package ingest

import (
	"bytes"

	"spoolfs/queue"
)

// v02FromRetry fills in the message in a retry record of sarra v2, which holds it
// as it was received: [topic, headers, notice]. It returns the base URL and the path.
func v02FromRetry(m *queue.Message, rec *record) (base, path []byte, reason string) {
	topic := unquote(rec.triple[0])
	notice := bytes.Clone(unquote(rec.triple[2]))
	fields := objectMembers(rec.triple[1])
	if len(fields) > maxFields {
		return nil, nil, ReasonTooManyFields
	}
	fields, _ = fields.unique()

	if tag, _ := fields.last("_retry_tag_"); headerText(tag) == "done" {
		return nil, nil, skipDone
	}
	if !bytes.HasPrefix(topic, []byte("v02")) {
		return nil, nil, ReasonV2NotV02
	}
	words := bytes.SplitN(notice, []byte(" "), 4)
	if len(words) < 3 {
		return nil, nil, ReasonV2BadNotice
	}
	var ok bool
	if m.PubTime, ok = parsePubTime(words[0]); !ok {
		return nil, nil, ReasonV2BadNotice
	}
	m.ContentType, m.ContentEncoding = "text/plain", "utf-8"
	m.Body = notice
	m.Headers = retryHeaders(fields)
	path = unquotePath(words[2])
	if m.Key, m.HasKey = usableKey(rec.triple[0], true); !m.HasKey {
		m.Words = pythonWords(path)
	}
	return words[1], path, checkV02(m)
}

// retryHeaders are the headers as they were, without the mark of sarra v2.
func retryHeaders(fields members) headerTable {
	table := make(headerTable, 0, len(fields))
	for _, field := range fields {
		if string(field.name) != "_retry_tag_" {
			table.add(string(field.name), headerText(field.value))
		}
	}
	return table
}

// unquotePath undoes what a notice does to a path.
func unquotePath(path []byte) []byte {
	path = bytes.ReplaceAll(path, []byte("%20"), []byte(" "))
	return bytes.ReplaceAll(path, []byte("%23"), []byte("#"))
}
