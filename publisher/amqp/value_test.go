package amqp

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/fs/ingest"
	"spoolfs/publisher"
	"spoolfs/queue"
)

func TestHeaderValue(t *testing.T) {
	for text, want := range map[string]any{
		"1": int64(1), "-9223372036854775808": int64(math.MinInt64), "1.0": 1.0, "1e3": 1000.0, "true": true, "null": nil,
		`"a\u00e9"`: "aé", "[]": []any{}, `[1, "b", [false]]`: []any{int64(1), "b", []any{false}},
		`{"a": {"b": 0.5}}`: amqp091.Table{"a": amqp091.Table{"b": 0.5}},
	} {
		got, err := headerValue(queue.Header{Value: text, JSON: true})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, %v, want %#v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "1 2", "9223372036854775808", "1e309", "[1e309]", `{"a": 99999999999999999999}`,
		`{"` + strings.Repeat("x", 256) + `": 1}`, strings.Repeat("[", 32) + strings.Repeat("]", 32),
		strings.Repeat(`{"a":`, 32) + "1" + strings.Repeat("}", 32),
	} {
		if got, err := headerValue(queue.Header{Value: text, JSON: true}); err == nil {
			t.Errorf("%.60s: got %#v, want an error", text, got)
		}
	}
}

// FuzzEncode_WhatIngestTakes: what the format amqp takes for a message can be sent.
func FuzzEncode_WhatIngestTakes(f *testing.F) {
	f.Add([]byte(`{"exchange": "x", "routing_key": "k", "headers": {"a": [1, {"b": 1e3}], "CC": ["c"]}, "body": ""}`))
	f.Add([]byte(`{"properties": {"expiration": "1", "priority": 1, "timestamp": 5, "delivery_mode": 2, "type": "t"}, "body_base64": "AA=="}`))
	f.Add([]byte(`{"body": "", "headers": {"BCC": [], "n": -0, "t": {"": null}, "s": "\u0000"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		res := ingest.NewAMQP(0).Decode(append(line, '\n'), ingest.Position{})
		for _, m := range res.Messages {
			if m.Dead() {
				continue
			}
			m.ID = queue.FileID{}.MessageID(m.Line)
			p := publisher.Publication{Message: &m, Exchange: m.Exchange, Key: m.Key}
			msg, err := encode(p, maxFrame)
			if err == nil {
				err = msg.Headers.Validate()
			}
			if err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
	})
}

func TestEncode_Properties(t *testing.T) {
	p := publication("x", 1)
	p.Message.Properties = []queue.Property{
		{Name: "app_id", Value: "a"}, {Name: "correlation_id", Value: "c"}, {Name: "expiration", Value: "60000"}, {Name: "reply_to", Value: "r"},
		{Name: "type", Value: "t"}, {Name: "priority", Value: "255"}, {Name: "timestamp", Value: "5"}, {Name: "delivery_mode", Value: "1"},
	}
	m, err := encode(p, maxFrame)
	if err != nil {
		t.Fatal(err)
	}
	if m.AppId != "a" || m.CorrelationId != "c" || m.Expiration != "60000" || m.ReplyTo != "r" || m.Type != "t" ||
		m.Priority != 255 || m.Timestamp.Unix() != 5 || m.DeliveryMode != amqp091.Transient {
		t.Errorf("encoded %+v", m)
	}
	for _, bad := range []queue.Property{
		{Name: "priority", Value: "256"}, {Name: "priority", Value: "x"}, {Name: "delivery_mode", Value: "0"},
		{Name: "timestamp", Value: "-1"}, {Name: "user_id", Value: "u"}, {Name: "type", Value: strings.Repeat("x", 256)},
	} {
		p.Message.Properties = []queue.Property{bad}
		if _, err := encode(p, maxFrame); err == nil {
			t.Errorf("%+v was encoded", bad)
		}
	}
}
