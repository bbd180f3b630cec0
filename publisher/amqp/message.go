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
	// table: class, weight, body size, flags, delivery mode, and three short
	// strings.
	headerOverhead = 2 + 2 + 8 + 2 + 1 + 3*(1+maxShort)
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
	return amqp091.Publishing{
		DeliveryMode:    amqp091.Persistent,
		MessageId:       string(m.ID),
		ContentType:     m.ContentType,
		ContentEncoding: m.ContentEncoding,
		Headers:         headers,
		Body:            m.Body,
	}, nil
}

// encodeHeaders makes the header table. It must fit into one frame, with the
// other properties; amqp091-go would send a frame that the broker refuses.
func encodeHeaders(headers []queue.Header, frameSize int) (amqp091.Table, error) {
	if headers == nil {
		return nil, nil
	}
	table := make(amqp091.Table, len(headers))
	size := 4
	for _, h := range headers {
		if len(h.Name) > maxShort {
			return nil, tooLong("header-name", len(h.Name), maxShort)
		}
		if h.Name == "CC" || h.Name == "BCC" {
			// RabbitMQ reads further routing keys from these, wants an array,
			// and ends the channel if it gets a string.
			return nil, &publisher.InvalidError{Reason: "header-reserved: " + h.Name}
		}
		if _, twice := table[h.Name]; twice {
			return nil, &publisher.InvalidError{Reason: fmt.Sprintf("header-twice: %q", h.Name)}
		}
		table[h.Name] = h.Value
		size += 1 + len(h.Name) + 1 + 4 + len(h.Value)
	}
	if limit := frameSize - frameOverhead - headerOverhead; frameSize > 0 && size > limit {
		return nil, tooLong("headers", size, limit)
	}
	return table, nil
}

func tooLong(what string, size, limit int) error {
	return &publisher.InvalidError{
		Reason: fmt.Sprintf("%s-too-long: %d bytes, at most %d", what, size, limit),
	}
}
