package ingest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"spoolfs/queue"
)

// amqpFull is a line with all that there is to say.
const amqpFull = `{"exchange": "xs_alerts", "routing_key": "alerts.disk", "headers": {"level": 3, "host": "n1", "load": 0.5, "ok": false, ` +
	`"none": null, "tags": ["a", 1, {"b": [true]}], "CC": ["alerts.copy"]}, "properties": {"content_type": "application/json", ` +
	`"content_encoding": "utf-8", "correlation_id": "c", "reply_to": "r", "expiration": "060000", "type": "t", "app_id": "a", ` +
	`"priority": 9, "timestamp": 1796025600, "delivery_mode": 1}, "body": "{\"text\": \"full\"}"}`

// TestAMQP_AllFields proves I13: each field comes out as it was said.
func TestAMQP_AllFields(t *testing.T) {
	got := NewAMQP(0).Decode([]byte(amqpFull+"\n"), Position{})
	want := []queue.Message{{
		Line: 1, Exchange: "xs_alerts", Key: "alerts.disk", HasKey: true,
		ContentType: "application/json", ContentEncoding: "utf-8", Body: []byte(`{"text": "full"}`),
		Headers: []queue.Header{
			{Name: "level", Value: "3", JSON: true}, {Name: "host", Value: "n1"}, {Name: "load", Value: "0.5", JSON: true},
			{Name: "ok", Value: "false", JSON: true}, {Name: "none", Value: "null", JSON: true},
			{Name: "tags", Value: `["a", 1, {"b": [true]}]`, JSON: true}, {Name: "CC", Value: `["alerts.copy"]`, JSON: true},
		},
		Properties: []queue.Property{
			{Name: "correlation_id", Value: "c"}, {Name: "reply_to", Value: "r"}, {Name: "expiration", Value: "60000"},
			{Name: "type", Value: "t"}, {Name: "app_id", Value: "a"}, {Name: "priority", Value: "9"},
			{Name: "timestamp", Value: "1796025600"}, {Name: "delivery_mode", Value: "1"},
		},
	}}
	if !reflect.DeepEqual(got.Messages, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got.Messages, want)
	}
}

// TestAMQP_Lines proves I14: what is not exactly a message is a dead letter that
// says why, with its raw bytes, and costs no other line.
func TestAMQP_Lines(t *testing.T) {
	long := strings.Repeat("x", 256)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct{ line, reason string }{
		{`{"body": ""}`, ""},
		{`{"body": "\u00e9\ud83d\ude00\u0000", "routing_key": ""}`, ""},
		{`{"body_base64": "AP8=", "headers": {}, "properties": {}}`, ""},
		{`{"body": "", "routing_key": "` + long[1:] + `"}`, ""},
		{`{"body": "", "headers": {"n": 9223372036854775807, "m": -9223372036854775808, "x": 1e308, "z": -0}}`, ""},
		{`{"body": "", "headers": {"deep": ` + deep(31) + `}}`, ""},
		{`{"body": "", "headers": {"` + long[1:] + `": "` + long + `"}}`, ""},
		{`hello`, "not-json"},
		{`["body"]`, "not-an-object"},
		{`{"body": "a"} x`, "trailing-garbage"},
		{`{}`, "missing-body"},
		{`{"routing_key": "a"}`, "missing-body"},
		{`{"body": "a", "body_base64": "YQ=="}`, "key-twice: body and body_base64"},
		{`{"body": "a", "b\u006fdy": "b"}`, `key-twice: "body"`},
		{`{"body": "a", "routing-key": "b"}`, `unknown-key: "routing-key"`},
		{`{"body": {"temp": 21}}`, "wrong-type-body"},
		{`{"body": "\ud800"}`, "bad-text-body"},
		{`{"body_base64": "YQ"}`, "bad-body_base64"},
		{`{"body_base64": "YQ==\n"}`, "bad-body_base64"},
		{`{"body_base64": "YR=="}`, "bad-body_base64"},
		{`{"body": "", "exchange": ""}`, "wrong-type-exchange: it is empty"},
		{`{"body": "", "exchange": 1}`, "wrong-type-exchange"},
		{`{"body": "", "exchange": "` + long + `"}`, "exchange-too-long: 256 bytes, at most 255"},
		{`{"body": "", "routing_key": "` + long + `"}`, "routing-key-too-long: 256 bytes, at most 255"},
		{`{"body": "", "routing_key": "` + strings.Repeat("é", 128) + `"}`, "routing-key-too-long: 256 bytes"},
		{`{"body": "", "routing_key": "a\u0000"}`, "bad-text-routing_key: a NUL"},
		{`{"body": "", "routing_key": null}`, "wrong-type-routing_key"},
		{`{"body": "", "headers": []}`, "wrong-type-headers"},
		{`{"body": "", "headers": {"a": 1, "a": 2}}`, `bad-header: "a" is there twice`},
		{`{"body": "", "headers": {"t": {"a": 1, "a": 2}}}`, `bad-header: "t": "a" is there twice`},
		{`{"body": "", "headers": {"n": 9223372036854775808}}`, `bad-header: "n": 9223372036854775808 is beyond 64 bits`},
		{`{"body": "", "headers": {"n": [1e309]}}`, `bad-header: "n": 1e309 is beyond a double`},
		{`{"body": "", "headers": {"n": "\udc00"}}`, `bad-header: "n": half of a surrogate pair`},
		{`{"body": "", "headers": {"` + long + `": 1}}`, `bad-header: "` + long[:40] + `"…: a name has at most 255 bytes`},
		{`{"body": "", "headers": {"deep": ` + deep(32) + `}}`, "too-deep"},
		{`{"body": "", "headers": {"a": [` + strings.Repeat("1,", 8191) + `1]}}`, ""},
		{`{"body": "", "headers": {"a": [` + strings.Repeat("1,", 8192) + `1]}}`, `bad-header: "a": more than 8192 entries`},
		{`{"body": "", "headers": {"CC": "a"}}`, "bad-header: CC holds routing keys"},
		{`{"body": "", "headers": {"BCC": [1]}}`, "bad-header: BCC holds routing keys"},
		{`{"body": "", "headers": {"a": "` + strings.Repeat("x", 130000) + `"}}`, "headers-too-long: 130011 bytes, at most 122880"},
		{`{"body": "", "properties": 1}`, "wrong-type-properties"},
		{`{"body": "", "properties": {"type": "a", "type": "b"}}`, `key-twice: "type"`},
		{`{"body": "", "properties": {"ttl": 1}}`, `unknown-property: "ttl"`},
		{`{"body": "", "properties": {"type": 1}}`, "wrong-type-type"},
		{`{"body": "", "properties": {"type": "` + long + `"}}`, "type-too-long: 256 bytes"},
		{`{"body": "", "properties": {"expiration": 60000}}`, "wrong-type-expiration"},
		{`{"body": "", "properties": {"expiration": "+5"}}`, "bad-property: expiration: "},
		{`{"body": "", "properties": {"reply_to": "amq.rabbitmq.reply-to"}}`, "bad-property: reply_to: "},
		{`{"body": "", "properties": {"expiration": "4294967296"}}`, "bad-property: expiration: "},
		{`{"body": "", "properties": {"priority": 256}}`, "bad-property: priority: want a whole number from 0 to 255, not 256"},
		{`{"body": "", "properties": {"priority": 1.0}}`, "bad-property: priority: "},
		{`{"body": "", "properties": {"priority": "1"}}`, "bad-property: priority: "},
		{`{"body": "", "properties": {"delivery_mode": 3}}`, "bad-property: delivery_mode: "},
		{`{"body": "", "properties": {"timestamp": -1}}`, "bad-property: timestamp: "},
		{`{"body": "", "properties": {"message_id": "x"}}`, "bad-property: message_id: "},
		{`{"body": "", "properties": {"user_id": "x"}}`, "bad-property: user_id: "},
	} {
		data := []byte(amqpFull + "\n" + tt.line + "\n" + amqpFull + "\n")
		res := NewAMQP(0).Decode(data, Position{})
		if len(res.Messages) != 3 || res.Messages[0].Dead() || res.Messages[2].Dead() || res.Messages[2].Line != 3 {
			t.Fatalf("%.80s: got %+v", tt.line, res)
		}
		m := res.Messages[1]
		if m.Dead() != (tt.reason != "") || !strings.HasPrefix(m.Reason, tt.reason) {
			t.Errorf("%.80s: reason %q, want %q", tt.line, m.Reason, tt.reason)
		}
		if m.Dead() && (string(m.Body) != tt.line+"\n" || m.HasKey) {
			t.Errorf("%.80s: the dead letter is %.200q", tt.line, fmt.Sprint(m))
		}
	}
}

// TestAMQP_Tail: a last line without newline is torn if more could have made it a
// message.
func TestAMQP_Tail(t *testing.T) {
	for line, want := range map[string]string{
		`{"body": "a"}`: "", `{"body": "a"`: ReasonTornLastLine, "{\"body\": \"\xc3": ReasonTornLastLine,
		`{"bdy": "a"}`: `unknown-key: "bdy"`, `{"body": "a"}}`: ReasonTrailingGarbage,
	} {
		res := NewAMQP(0).Decode([]byte(line), Position{})
		if res.Tail == nil || res.Tail.Reason != want {
			t.Errorf("%s: tail %+v, want reason %q", line, res.Tail, want)
		}
	}
	if res := NewAMQP(20).Decode([]byte(strings.Repeat("x", 21)+"\n"), Position{}); res.Messages[0].Reason != ReasonTooLong {
		t.Errorf("a long line: %+v", res)
	}
}

// FuzzAMQP_Decode decodes any bytes, at once and in two pieces.
func FuzzAMQP_Decode(f *testing.F) {
	f.Add([]byte(amqpFull+"\n"+amqpFull), uint(500))
	f.Add([]byte("\uFEFF{\"body_base64\": \"AP8=\"}\r\n\x00\n{\"body\": \"\\ud800\"}\n{\"body\": 1"), uint(30))
	f.Add([]byte(`{"body": "", "headers": {"a": [[{"b": 1e400}]], "CC": [""]}}`+"\n\n"), uint(3))
	f.Fuzz(func(t *testing.T, data []byte, cut uint) {
		decoder := NewAMQP(4096)
		res := decoder.Decode(data, Position{})
		if got := bytes.Count(data[:res.Consumed], []byte("\n")); got != res.Lines || len(res.Messages)+res.Skipped != got {
			t.Errorf("%d lines, %d messages and %d skipped from %d lines", res.Lines, len(res.Messages), res.Skipped, got)
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		for _, m := range res.Messages {
			checkAMQP(t, &m, lines[m.Line-1])
		}
		if res.Tail != nil {
			checkAMQP(t, res.Tail, data[res.Consumed:])
		}
		pieces := decodePieces(decoder, data, int(cut%uint(len(data)+1)))
		if !reflect.DeepEqual(pieces, res) {
			t.Errorf("in two pieces:\n got %+v\nwant %+v", pieces, res)
		}
	})
}

// checkAMQP checks what is true of any message from that line.
func checkAMQP(t *testing.T, m *queue.Message, line []byte) {
	t.Helper()
	switch {
	case m.Dead():
		if !bytes.Equal(m.Body, line) {
			t.Errorf("line %d: dead letter of %q, want %q", m.Line, m.Body, line)
		}
		return
	case !m.HasKey || len(m.Key) > 255 || len(m.Exchange) > 255:
		t.Errorf("line %d: %+v", m.Line, m)
	}
	// The same said in another way means the same.
	again := fmt.Appendf(nil, `{"body_base64": "%s"}`+"\n", base64.StdEncoding.EncodeToString(m.Body))
	if res := NewAMQP(0).Decode(again, Position{}); len(res.Messages) != 1 || !bytes.Equal(res.Messages[0].Body, m.Body) {
		t.Errorf("line %d: body %q became %+v", m.Line, m.Body, res)
	}
}
