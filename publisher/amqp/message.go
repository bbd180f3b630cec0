package amqp

import (
	"fmt"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/publisher"
	"spoolfs/queue"
)

const (
	// maxShort is the length of a short string, which has one byte for it.
	maxShort = 255

	// frameOverhead is what frames a payload: type, channel, length, end.
	frameOverhead = 8

	// headerOverhead is the most that a content header takes beside the header
	// table: class, weight, body size, flags, delivery mode, priority, timestamp,
	// and eight short strings.
	headerOverhead = 2 + 2 + 8 + 2 + 1 + 1 + 8 + 8*(1+maxShort)
)

// encode makes what the library sends. The broker must not see anything of a
// message that cannot be sent, since half of one ends the connection.
func encode(p publisher.Publication, frameSize int) (amqp091.Publishing, error) {
	m := p.Message
	for _, f := range [...]struct{ name, value string }{
		{"exchange", p.Exchange},
		{"routing-key", p.Key},
		{"message-id", string(m.ID)},
		{"content-type", m.ContentType},
		{"content-encoding", m.ContentEncoding},
	} {
		if len(f.value) > maxShort {
			return amqp091.Publishing{}, tooLong(f.name, len(f.value), maxShort)
		}
	}
	headers, err := encodeHeaders(m.Headers, frameSize)
	if err != nil {
		return amqp091.Publishing{}, err
	}
	msg := amqp091.Publishing{
		DeliveryMode:    amqp091.Persistent,
		MessageId:       string(m.ID),
		ContentType:     m.ContentType,
		ContentEncoding: m.ContentEncoding,
		Headers:         headers,
		Body:            m.Body,
	}
	return msg, setProperties(&msg, m.Properties)
}

// encodeHeaders makes the header table. It must fit into one frame, with the
// other properties; amqp091-go would send a frame that the broker refuses.
func encodeHeaders(headers []queue.Header, frameSize int) (amqp091.Table, error) {
	if headers == nil {
		return nil, nil
	}
	table := make(amqp091.Table, len(headers))
	for _, h := range headers {
		if len(h.Name) > maxShort {
			return nil, tooLong("header-name", len(h.Name), maxShort)
		}
		if _, twice := table[h.Name]; twice {
			return nil, &publisher.InvalidError{Reason: fmt.Sprintf("header-twice: %q", h.Name)}
		}
		value, err := headerValue(h)
		if err != nil {
			return nil, &publisher.InvalidError{Reason: fmt.Sprintf("header-invalid: %q: %v", h.Name, err)}
		}
		if isRoutingHeader(h.Name) && !areKeys(value) {
			return nil, &publisher.InvalidError{Reason: "header-reserved: " + h.Name}
		}
		table[h.Name] = value
	}
	size := tableSize(table)
	if limit := frameSize - frameOverhead - headerOverhead; frameSize > 0 && size > limit {
		return nil, tooLong("headers", size, limit)
	}
	return table, nil
}

// isRoutingHeader reports whether RabbitMQ reads further routing keys from a header.
// It wants an array of strings, and ends the channel if it gets something else.
func isRoutingHeader(name string) bool { return name == "CC" || name == "BCC" }

func areKeys(value any) bool {
	keys, ok := value.([]any)
	for _, key := range keys {
		text, isText := key.(string)
		ok = ok && isText && len(text) <= maxShort
	}
	return ok
}

func tooLong(what string, size, limit int) error {
	return &publisher.InvalidError{
		Reason: fmt.Sprintf("%s-too-long: %d bytes, at most %d", what, size, limit),
	}
}
