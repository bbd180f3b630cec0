package ingest

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"spoolfs/queue"
)

// amqpHeaders reads a header table. Values that are no strings stay JSON.
func amqpHeaders(value []byte) (headers []queue.Header, reason string) {
	if value[0] != '{' {
		return nil, ReasonWrongType + "headers"
	}
	fields := objectMembers(value)
	size, reason := tableSize(fields)
	if reason != "" {
		return nil, ReasonBadHeader + reason
	}
	if size > maxHeaders {
		return nil, tooLong("headers", size, maxHeaders)
	}
	headers = make([]queue.Header, 0, len(fields))
	for _, f := range fields {
		name := string(f.name)
		if isRoutingHeader(name) && !areKeys(f.value) {
			return nil, ReasonBadHeader + name + " holds routing keys: want an array of strings"
		}
		if text, ok := stringValue(f.value); ok {
			headers = append(headers, queue.Header{Name: name, Value: string(text)})
		} else {
			headers = append(headers, queue.Header{Name: name, Value: string(f.value), JSON: true})
		}
	}
	return headers, ""
}

// areKeys reports whether a value is an array of routing keys.
func areKeys(value []byte) bool {
	if value[0] != '[' {
		return false
	}
	for element := range elements(value) {
		if text, ok := stringValue(element); !ok || len(text) > maxShort {
			return false
		}
	}
	return true
}

// tableSize is the size in bytes of a table in AMQP, its length included, or the
// reason why it cannot be one. The record's scanner bounds the depth.
func tableSize(fields members) (size int, reason string) {
	if len(fields) > maxEntries {
		return 0, tooManyEntries
	}
	if name, twice := fields.twice(); twice {
		return 0, fmt.Sprintf("%.40q is there twice", name)
	}
	size = tableOverhead
	for _, f := range fields {
		if len(f.name) > maxShort || !utf8.Valid(f.name) {
			return 0, fmt.Sprintf("%.40q…: a name has at most %d bytes of UTF-8", f.name, maxShort)
		}
		n, reason := valueSize(f.value)
		if reason != "" {
			return 0, fmt.Sprintf("%.40q: %s", f.name, reason)
		}
		size += 1 + len(f.name) + n
	}
	return size, ""
}

// valueSize is the size of a value with its type.
func valueSize(value []byte) (size int, reason string) {
	switch value[0] {
	case 't', 'f':
		return 1 + 1, ""
	case 'n':
		return 1, ""
	case '"':
		text, _ := stringValue(value)
		if !utf8.Valid(text) {
			return 0, "half of a surrogate pair is no character"
		}
		return 1 + 4 + len(text), ""
	case '[':
		return arraySize(value)
	case '{':
		size, reason = tableSize(objectMembers(value))
		return 1 + size, reason
	}
	return 1 + 8, checkNumber(value)
}

var tooManyEntries = fmt.Sprintf("more than %d entries in one table or array", maxEntries)

func arraySize(value []byte) (size int, reason string) {
	size = 1 + 4
	count := 0
	for element := range elements(value) {
		if count++; count > maxEntries {
			return 0, tooManyEntries
		}
		n, reason := valueSize(element)
		if reason != "" {
			return 0, reason
		}
		size += n
	}
	return size, ""
}

// checkNumber refuses what becomes another number in AMQP.
func checkNumber(value []byte) (reason string) {
	if bytes.ContainsAny(value, ".eE") {
		if _, err := strconv.ParseFloat(string(value), 64); err != nil {
			return fmt.Sprintf("%.40s is beyond a double", value)
		}
	} else if _, err := strconv.ParseInt(string(value), 10, 64); err != nil {
		return fmt.Sprintf("%.40s is beyond 64 bits", value)
	}
	return ""
}
