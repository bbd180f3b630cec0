package amqp

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"spoolfs/fs/ingest"
	"spoolfs/publisher"
	"spoolfs/queue"
)

// oddities draws what a record of the format amqp may say.
type oddities struct{ *rand.Rand }

var oddNames = []string{
	"", "a", "é", "\x01", "x-death", "x-match", "x-delay", "x-first-death-queue", "x-last-death-reason", "x-delivery-count",
	"x-received-from", "x-stream-offset", "x-stream-filter-value", "x-user-id", "x-shard", "x-recent-history", "x-retry-count",
	"CC", "BCC", "cc", "Sender-selected", "priority", "timestamp_in_ms",
}

func (o oddities) pick(from []string) string { return from[o.IntN(len(from))] }

func (o oddities) value(depth int) any {
	n := 10
	if depth == 0 {
		n = 6
	}
	switch o.IntN(n) {
	case 0:
		return nil
	case 1:
		return o.IntN(2) == 0
	case 2:
		return []int64{0, -1, 255, math.MaxInt32 + 1, math.MinInt64, math.MaxInt64}[o.IntN(6)]
	case 3:
		return []float64{0.5, -1e300, 5e-324, 1e18}[o.IntN(4)]
	case 4, 5:
		return o.pick([]string{"", "x", "é\u2028\U0001F600", "\x00\x01", "0", "true", "'; --"})
	case 6, 7:
		list := make([]any, o.IntN(4))
		for i := range list {
			list[i] = o.value(depth - 1)
		}
		return list
	}
	return o.table(depth - 1)
}

func (o oddities) table(depth int) map[string]any {
	table := map[string]any{}
	for range o.IntN(4) {
		name := o.pick(oddNames)
		table[name] = o.value(depth)
		if name == "CC" || name == "BCC" {
			table[name] = [][]string{{}, {"v03.cc"}, {"", "é"}}[o.IntN(3)]
		}
	}
	return table
}

func (o oddities) record() []byte {
	properties := map[string]any{}
	for name, values := range map[string][]any{
		"content_type": {"", "text/plain", "é"}, "content_encoding": {"utf-8", "gzip", "\x01"},
		"correlation_id": {"", "c"}, "reply_to": {"amq.rabbitmq.reply-to", "r", "é"}, "type": {"t"}, "app_id": {"a"},
		"expiration": {"4294967295", "3600000"}, "priority": {0, 9, 255}, "delivery_mode": {1, 2}, "timestamp": {0, 253402300799},
	} {
		if o.IntN(4) == 0 {
			properties[name] = values[o.IntN(len(values))]
		}
	}
	text, err := json.Marshal(map[string]any{
		"routing_key": o.pick([]string{"", "v03", "a.b.#.*", "é", "..", "\x01"}),
		"headers":     o.table(3), "properties": properties, "body": o.pick([]string{"", "x", "é"}),
	})
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

// TestLine_OddMessages: whatever a record of the format amqp may say, the broker
// takes it, in one session: nothing that ingest lets through costs others a repeat.
func TestLine_OddMessages(t *testing.T) {
	const messages = 3000
	seed := uint64(1)
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	o := oddities{rand.New(rand.NewPCG(seed, 0))}
	var text []byte
	for range messages {
		text = append(text, o.record()...)
	}
	decoded := ingest.NewAMQP(0).Decode(text, ingest.Position{}).Messages
	q := declareQueue(t, nil)
	l := startLine(t, publisher.Options{Exchange: q.Exchange}, Options{URL: node.URL()})
	good := 0
	l.append(len(decoded), func(i int, m *queue.Message) {
		id, line, ingested := m.ID, m.Line, m.Ingested
		*m = decoded[i]
		m.ID, m.Line, m.Ingested = id, line, ingested
		if m.Reason == "" {
			good++
		}
	})
	l.until("all settled", func(s queue.Stats, p publisher.Stats) bool {
		return s.Ready+s.Leased+s.Delayed == 0 && p.InFlight == 0
	})
	s, err := l.route.Stats()
	if err != nil {
		t.Fatal(err)
	}
	p := l.p.Stats()
	if p.SessionsTotal != 1 || p.InvalidTotal > 0 || int(p.ConfirmedTotal) != good || good < messages/2 {
		t.Errorf("%d good messages: %+v", good, p)
	}
	if s.Dead > 0 {
		n := 0
		for m, err := range l.route.Dead() {
			if n++; n < 6 {
				t.Logf("%v: %s: %q %v %v", err, m.Reason, m.Key, m.Headers, m.Properties)
			}
		}
	}
	if n := len(idsOf(drain(t, q))); n != good {
		t.Errorf("%d messages arrived, want %d", n, good)
	}
}
