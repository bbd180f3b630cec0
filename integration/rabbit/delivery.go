package rabbit

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Delivery is a message as a consumer gets it.
type Delivery struct {
	Exchange    string
	Key         string
	Redelivered bool

	MessageID       string
	ContentType     string
	ContentEncoding string
	DeliveryMode    uint8

	AppID         string
	CorrelationID string
	Expiration    string
	Priority      uint8
	ReplyTo       string
	Timestamp     time.Time
	Type          string

	// Headers is nil when the message has no header table and empty when its
	// table is empty.
	Headers map[string]any

	Body []byte

	// At is when it came.
	At time.Time

	tag uint64
}

func newDelivery(d amqp.Delivery) Delivery {
	return Delivery{
		At:              time.Now(),
		Exchange:        d.Exchange,
		Key:             d.RoutingKey,
		Redelivered:     d.Redelivered,
		MessageID:       d.MessageId,
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		DeliveryMode:    d.DeliveryMode,
		AppID:           d.AppId,
		CorrelationID:   d.CorrelationId,
		Expiration:      d.Expiration,
		Priority:        d.Priority,
		ReplyTo:         d.ReplyTo,
		Timestamp:       d.Timestamp,
		Type:            d.Type,
		Headers:         d.Headers,
		Body:            d.Body,
		tag:             d.DeliveryTag,
	}
}
