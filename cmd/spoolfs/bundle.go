package main

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"spoolfs/queue"
)

// A bundle is messages on their way from one store to another, as lines of JSON:
//
//	{"spoolfs_bundle": 1, "id": "<32 hexadecimal digits>", "exported": "…", "version": "…"}
//	{"route": "default", "state": "ready", "id": "…-1", "file": "post_retry.n1.4242", "body": "…"}
//	…
//
// The id is drawn at the export. A store remembers of the last 4,096 bundles how
// many lines of each it has, and a checksum of them, so that what comes once more
// is passed over and what was cut goes on. A text that is not UTF-8 is an object,
// {"base64": "…"}.
const bundleFormat = 1

// bundleHead is the first line of a bundle. Several bundles may stand one behind
// the other.
type bundleHead struct {
	Format   int       `json:"spoolfs_bundle"`
	ID       string    `json:"id"`
	Exported time.Time `json:"exported"`
	Version  string    `json:"version,omitempty"`
	From     string    `json:"from,omitempty"`
}

func newBundleHead(id queue.FileID, from string) []byte {
	return jsonLine(bundleHead{Format: bundleFormat, ID: id.String(), Exported: time.Now().UTC(), Version: version(), From: from})
}

// bundled is a message in a bundle.
type bundled struct {
	Route    string    `json:"route,omitempty"`
	State    string    `json:"state"` // ready, delayed, dead or partial
	ID       text      `json:"id"`
	Ingested time.Time `json:"ingested,omitzero"`
	File     text      `json:"file,omitzero"`
	UID      uint32    `json:"uid"`
	Line     uint32    `json:"line,omitempty"`
	Subject  text      `json:"subject,omitzero"`
	Attempts uint32    `json:"attempts,omitempty"`
	Reason   text      `json:"reason,omitzero"`

	Words      []text    `json:"words,omitempty"`
	Key        *text     `json:"key,omitempty"`
	Exchange   text      `json:"exchange,omitzero"`
	PubTime    time.Time `json:"pub_time,omitzero"`
	Type       text      `json:"content_type,omitzero"`
	Encoding   text      `json:"content_encoding,omitzero"`
	Headers    *[][]text `json:"headers,omitempty"` // name and value, and "json" if that is the value's JSON
	Properties [][2]text `json:"properties,omitempty"`
	Body       text      `json:"body,omitzero"`
}

// text is any bytes: a JSON string if they are UTF-8, and {"base64": "…"} if not.
type text string

type base64Text struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(base64Text{[]byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var raw base64Text
		err := json.Unmarshal(b, &raw)
		*t = text(raw.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

// bundleLine is the line of a message. A record among those that wait which cannot
// be read is a dead letter, as it will be when it is its turn.
func bundleLine(route, state string, m *queue.Message) []byte {
	if m.Dead() {
		state = stateDead
	}
	b := bundled{
		Route: route, State: state, ID: text(m.ID), Ingested: m.Ingested, File: text(m.File), UID: m.UID, Line: m.Line,
		Subject: text(m.Subject), Attempts: m.Attempts, Reason: text(m.Reason), Exchange: text(m.Exchange), PubTime: m.PubTime,
		Type: text(m.ContentType), Encoding: text(m.ContentEncoding), Body: text(m.Body),
	}
	for _, w := range m.Words {
		b.Words = append(b.Words, text(w))
	}
	if m.HasKey {
		b.Key = new(text)
		*b.Key = text(m.Key)
	}
	if m.Headers != nil {
		b.Headers = &[][]text{}
	}
	for _, h := range m.Headers {
		header := []text{text(h.Name), text(h.Value)}
		if h.JSON {
			header = append(header, jsonHeader)
		}
		*b.Headers = append(*b.Headers, header)
	}
	for _, p := range m.Properties {
		b.Properties = append(b.Properties, [2]text{text(p.Name), text(p.Value)})
	}
	return jsonLine(b)
}

// message is the message of a line.
func (b *bundled) message() (queue.Message, error) {
	m := queue.Message{
		ID: queue.ID(b.ID), Ingested: b.Ingested, File: string(b.File), UID: b.UID, Line: b.Line,
		Subject: string(b.Subject), Attempts: b.Attempts, Reason: string(b.Reason), Exchange: string(b.Exchange), PubTime: b.PubTime,
		ContentType: string(b.Type), ContentEncoding: string(b.Encoding), Body: []byte(b.Body),
		Partial: b.State == statePartial,
	}
	switch aside := b.State == stateDead || b.State == statePartial; {
	case m.ID == "":
		return m, fmt.Errorf("a message has no id")
	case !aside && b.State != stateReady && b.State != stateDelayed:
		return m, fmt.Errorf("message %s has the state %q", m.ID, b.State)
	case aside != (m.Reason != ""):
		return m, fmt.Errorf("message %s is %s, and its reason is %q", m.ID, b.State, m.Reason)
	}
	for _, w := range b.Words {
		m.Words = append(m.Words, string(w))
	}
	if b.Key != nil {
		m.Key, m.HasKey = string(*b.Key), true
	}
	if b.Headers != nil {
		m.Headers = []queue.Header{}
		for _, h := range *b.Headers {
			if len(h) < 2 {
				return m, fmt.Errorf("message %s has a header without a value", m.ID)
			}
			m.Headers = append(m.Headers, queue.Header{Name: string(h[0]), Value: string(h[1]), JSON: len(h) > 2 && h[2] == jsonHeader})
		}
	}
	for _, p := range b.Properties {
		m.Properties = append(m.Properties, queue.Property{Name: string(p[0]), Value: string(p[1])})
	}
	return m, nil
}

// jsonHeader marks a header whose value is no text.
const jsonHeader = "json"

// The states in which a message can be in a bundle.
const (
	stateReady   = "ready"
	stateDelayed = "delayed"
	stateDead    = "dead"
	statePartial = "partial"
)

// bundleStates are the states in the order of an export.
var bundleStates = []struct {
	name  string
	state queue.State
}{{stateReady, queue.Pending}, {stateDelayed, queue.Delayed}, {stateDead, queue.Dead}, {statePartial, queue.Partial}}

// jsonLine is a value on a line of its own.
func jsonLine(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err) // of a type that has no JSON
	}
	return append(line, '\n')
}
