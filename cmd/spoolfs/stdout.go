package main

import (
	"encoding/json"
	"io"
	"sync"
	"unicode/utf8"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// stdoutSession is a broker for a first try: it prints each message as a JSON
// line and confirms it.
type stdoutSession struct {
	out      *json.Encoder
	verdicts chan publisher.Verdict

	mu     sync.Mutex
	closed bool
}

var _ publisher.Session = (*stdoutSession)(nil)

// newStdoutSession makes a session for as many messages in flight as window.
func newStdoutSession(w io.Writer, window int) *stdoutSession {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return &stdoutSession{out: out, verdicts: make(chan publisher.Verdict, window)}
}

// printed is the form of a message on stdout. A body that is not UTF-8 is in
// base64 instead.
type printed struct {
	ID          string            `json:"id"`
	Exchange    string            `json:"exchange"`
	RoutingKey  string            `json:"routing_key"`
	ContentType string            `json:"content_type,omitempty"`
	Headers     map[string]any    `json:"headers,omitempty"`
	Properties  map[string]string `json:"properties,omitempty"`
	Body        string            `json:"body,omitempty"`
	BodyBase64  []byte            `json:"body_base64,omitempty"`
}

// addFields adds headers and properties.
func (p *printed) addFields(m *queue.Message) {
	for _, h := range m.Headers {
		if p.Headers == nil {
			p.Headers = map[string]any{}
		}
		p.Headers[h.Name] = h.Value
		if h.JSON {
			p.Headers[h.Name] = json.RawMessage(h.Value)
		}
	}
	for _, property := range m.Properties {
		if p.Properties == nil {
			p.Properties = map[string]string{}
		}
		p.Properties[property.Name] = property.Value
	}
}

// Publish prints a message.
func (s *stdoutSession) Publish(p publisher.Publication) error {
	line := printed{
		ID: string(p.Message.ID), Exchange: p.Exchange, RoutingKey: p.Key,
		ContentType: p.Message.ContentType,
	}
	line.addFields(p.Message)
	if utf8.Valid(p.Message.Body) {
		line.Body = string(p.Message.Body)
	} else {
		line.BodyBase64 = p.Message.Body
	}
	if err := s.out.Encode(line); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.verdicts <- publisher.Verdict{Tag: p.Tag, Outcome: publisher.Confirmed}
	}
	return nil
}

// Flush has nothing to do.
func (s *stdoutSession) Flush() error { return nil }

// Verdicts has a confirm for each line that was printed.
func (s *stdoutSession) Verdicts() <-chan publisher.Verdict { return s.verdicts }

// Err is nil: the error of a failed write is that of Publish.
func (s *stdoutSession) Err() error { return nil }

// Blocked is never so.
func (s *stdoutSession) Blocked() string { return "" }

// Close ends the session.
func (s *stdoutSession) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.verdicts)
	}
	return nil
}
