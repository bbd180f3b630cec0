package publisher

import (
	"strings"
	"unicode/utf8"

	"spoolfs/queue"
)

// maxShortString is the length of an AMQP short string in bytes, which
// exchanges and routing keys are.
const maxShortString = 255

// routingKey is the routing key of a message: its own topic, that of the
// configuration, or the words of its path.
func (o *Options) routingKey(m *queue.Message) string {
	if o.Topic != "" && (!m.HasKey || m.Key == "") {
		return o.Topic
	}
	return RoutingKey(o.TopicPrefix, m)
}

// RoutingKey returns the routing key of a message: its own, or the prefix and
// its words joined with dots. As Sarracenia's C implementation does, it takes
// whole words as long as all fits into 255 bytes; it also stops before a word
// that is not UTF-8, which consumers could not read.
func RoutingKey(prefix string, m *queue.Message) string {
	if m.HasKey {
		return m.Key
	}
	var key strings.Builder
	key.WriteString(prefix)
	for i, word := range m.Words {
		dot := 1
		if i == 0 && prefix == "" {
			dot = 0
		}
		if key.Len()+dot+len(word) > maxShortString || !utf8.ValidString(word) {
			break
		}
		key.WriteString("."[:dot])
		key.WriteString(word)
	}
	return key.String()
}
