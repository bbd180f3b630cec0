package ingest

import (
	"fmt"
	"strconv"

	"spoolfs/queue"
)

// maxExpiration is the longest time in milliseconds that RabbitMQ takes. It ends
// the channel over a longer one.
const maxExpiration = 1<<32 - 1

// directReplyTo is a queue for answers that RabbitMQ makes for a channel that
// consumes from it. It ends the channel of anybody else who names it.
const directReplyTo = "amq.rabbitmq.reply-to"

// maxTimestamp is the end of the year 9999, in seconds.
const maxTimestamp = 253402300799

// setProperties sets what the properties of a record say.
func setProperties(m *queue.Message, value []byte) (reason string) {
	if value[0] != '{' {
		return ReasonWrongType + "properties"
	}
	fields := objectMembers(value)
	if name, twice := fields.twice(); twice {
		return ReasonKeyTwice + fmt.Sprintf("%.40q", name)
	}
	for _, f := range fields {
		if reason := setProperty(m, string(f.name), f.value); reason != "" {
			return reason
		}
	}
	return ""
}

func setProperty(m *queue.Message, name string, value []byte) (reason string) {
	var text string
	switch name {
	case "content_type":
		m.ContentType, reason = shortValue(name, value)
		return reason
	case "content_encoding":
		m.ContentEncoding, reason = shortValue(name, value)
		return reason
	case "correlation_id", "reply_to", "type", "app_id":
		text, reason = shortValue(name, value)
		if name == "reply_to" && text == directReplyTo {
			return ReasonBadProperty + "reply_to: " + directReplyTo + " is for who waits for the answer on the same connection, and nobody does"
		}
	case "expiration":
		text, reason = expirationValue(value)
	case "priority":
		text, reason = wholeValue(name, value, 0, 255)
	case "delivery_mode":
		text, reason = wholeValue(name, value, 1, 2)
	case "timestamp":
		text, reason = wholeValue(name, value, 0, maxTimestamp)
	case "message_id":
		return ReasonBadProperty + "message_id: each message gets one of its own, by which a repeat is known"
	case "user_id":
		return ReasonBadProperty + "user_id: the broker would refuse any but ours"
	default:
		return ReasonUnknownProperty + fmt.Sprintf("%.40q", name)
	}
	if reason == "" && text != "" {
		m.Properties = append(m.Properties, queue.Property{Name: name, Value: text})
	}
	return reason
}

// expirationValue is a time in milliseconds, which AMQP wants as a string.
func expirationValue(value []byte) (text, reason string) {
	text, reason = shortValue("expiration", value)
	if reason != "" {
		return "", reason
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > maxExpiration {
		return "", ReasonBadProperty + fmt.Sprintf(`expiration: %.40q is no number of milliseconds up to %d`, text, maxExpiration)
	}
	return strconv.FormatUint(n, 10), ""
}

// wholeValue is a whole number from lo to hi.
func wholeValue(name string, value []byte, lo, hi int64) (text, reason string) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < lo || n > hi {
		return "", ReasonBadProperty + fmt.Sprintf("%s: want a whole number from %d to %d, not %.40s", name, lo, hi, value)
	}
	return strconv.FormatInt(n, 10), ""
}
