package main

import (
	"bytes"
	"encoding/json"
	"os"

	"spoolfs/fs/ingest"
	"spoolfs/fs/janitor"
	"spoolfs/queue"
)

// diskqueueLine is a message as a line of a retry file of sr3: what jsonpickle
// makes of a message that is to be posted in the format v03. The fields of the
// body are copied as they are.
func diskqueueLine(m *queue.Message) (line []byte, ok bool) {
	body := bytes.TrimSpace(m.Body)
	isV03 := m.ContentType == "application/json" && len(m.Headers) == 0 && bytes.Contains(body, []byte(`"relPath"`))
	if !isV03 || len(body) < 2 || body[0] != '{' || !json.Valid(body) || bytes.ContainsAny(body, "\n\r") {
		return nil, false
	}
	private, remove := `"_format": "v03"`, `"_format"`
	add := func(name, value string) {
		private += `, "` + name + `": ` + string(bytes.TrimSpace(jsonLine(value)))
		remove += `, "` + name + `"`
	}
	if m.Exchange != "" {
		add("post_exchange", m.Exchange)
	}
	if m.HasKey {
		add("post_topic", m.Key)
	}
	fields := bytes.TrimSpace(body[1 : len(body)-1])
	line = append(line, `{"py/object": "sarracenia.Message", `+private+`, "_deleteOnPost": {"py/set": [`+remove+`]}, `...)
	line = append(line, fields...)
	if len(fields) > 0 {
		line = append(line, ", "...)
	}
	return append(line, "\"__dict__\": {}}\n"...), true
}

// bundleOfDiskqueue makes a bundle of a retry file of Sarracenia: the ids are those
// that a janitor would give. It reports whether there was a message in it.
func bundleOfDiskqueue(name string, content []byte, topicPrefix string) (bundle []byte, found bool) {
	id := janitor.FileID(name, content)
	bundle = newBundleHead(id, name)
	format := ingest.NewSarracenia(ingest.SarraceniaOptions{TopicPrefix: topicPrefix})
	result := format.Decode(content, ingest.Position{File: id, Seen: new(ingest.Seen)})
	ms := result.Messages
	if result.Tail != nil {
		tail := *result.Tail
		tail.Partial = tail.Reason == ingest.ReasonTornLastLine
		ms = append(ms, tail)
	}
	for i := range ms {
		m := &ms[i]
		// Without a time of ingest: the lines are the same when they come again.
		m.ID, m.File, m.UID = id.MessageID(m.Line), name, uint32(os.Getuid())
		found = found || m.Reason == ""
		state := stateReady
		switch {
		case m.Partial:
			state = statePartial
		case m.Dead():
			state = stateDead
		}
		bundle = append(bundle, bundleLine(defaultRoute, state, m)...)
	}
	return bundle, found
}
