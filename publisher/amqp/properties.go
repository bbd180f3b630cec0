package amqp

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// setProperties sets the properties that a message brings itself.
func setProperties(to *amqp091.Publishing, properties []queue.Property) error {
	for _, p := range properties {
		if len(p.Value) > maxShort {
			return tooLong(p.Name, len(p.Value), maxShort)
		}
		if !setText(to, p) && !setNumber(to, p) {
			return &publisher.InvalidError{Reason: fmt.Sprintf("property-invalid: %s %q", p.Name, p.Value)}
		}
	}
	return nil
}

// setText sets a property that is a short string.
func setText(to *amqp091.Publishing, p queue.Property) bool {
	field := map[string]*string{
		"app_id":         &to.AppId,
		"correlation_id": &to.CorrelationId,
		"expiration":     &to.Expiration,
		"reply_to":       &to.ReplyTo,
		"type":           &to.Type,
	}[p.Name]
	if field == nil || p.Name == "reply_to" && p.Value == directReplyTo {
		return false
	}
	*field = p.Value
	return true
}

// directReplyTo is for who consumes the answers on the channel on which the question
// was published, which we never do: RabbitMQ ends the channel.
const directReplyTo = "amq.rabbitmq.reply-to"

// setNumber sets a property that is a number, and reports whether it is one.
func setNumber(to *amqp091.Publishing, p queue.Property) bool {
	n, err := strconv.ParseInt(p.Value, 10, 64)
	if err != nil || n < 0 {
		return false
	}
	switch {
	case p.Name == "timestamp":
		to.Timestamp = time.Unix(n, 0)
	case p.Name == "priority" && n <= 255:
		to.Priority = uint8(n)
	case p.Name == "delivery_mode" && (n == 1 || n == 2):
		to.DeliveryMode = uint8(n)
	default:
		return false
	}
	return true
}
