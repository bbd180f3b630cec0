package amqp

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/queue"
)

// maxNesting is how deep tables and arrays may be nested: consumers that are
// written in Go read 32 levels, the header table included.
const maxNesting = 31

// headerValue is the value of a header as the library takes it: whole numbers are
// of 64 bits, others doubles.
func headerValue(h queue.Header) (any, error) {
	if !h.JSON {
		return h.Value, nil
	}
	text := json.NewDecoder(strings.NewReader(h.Value))
	text.UseNumber()
	var v any
	if err := text.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := text.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return fieldValue(v, maxNesting)
}

// fieldValue turns a value of encoding/json into one of the library. Arrays and
// tables may be nested so deep.
func fieldValue(v any, depth int) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return number(string(v))
	case []any:
		return fieldArray(v, depth-1)
	case map[string]any:
		return fieldTable(v, depth-1)
	}
	return v, nil // a string, a bool or nil
}

func number(text string) (any, error) {
	if strings.ContainsAny(text, ".eE") {
		return strconv.ParseFloat(text, 64)
	}
	return strconv.ParseInt(text, 10, 64)
}

func fieldArray(values []any, depth int) (any, error) {
	if depth < 0 {
		return nil, errTooDeep
	}
	array := make([]any, len(values))
	for i, v := range values {
		var err error
		if array[i], err = fieldValue(v, depth); err != nil {
			return nil, err
		}
	}
	return array, nil
}

func fieldTable(values map[string]any, depth int) (any, error) {
	if depth < 0 {
		return nil, errTooDeep
	}
	table := make(amqp091.Table, len(values))
	for name, v := range values {
		if len(name) > maxShort {
			return nil, fmt.Errorf("a name of %d bytes, at most %d", len(name), maxShort)
		}
		var err error
		if table[name], err = fieldValue(v, depth); err != nil {
			return nil, err
		}
	}
	return table, nil
}

var errTooDeep = fmt.Errorf("nested deeper than %d", maxNesting)

// valueSize is what a value takes in a frame: its type, and for what has no size of
// its own four bytes of length.
func valueSize(v any) int {
	switch v := v.(type) {
	case nil:
		return 1
	case bool:
		return 1 + 1
	case string:
		return 1 + 4 + len(v)
	case []any:
		size := 1 + 4
		for _, element := range v {
			size += valueSize(element)
		}
		return size
	case amqp091.Table:
		return 1 + tableSize(v)
	}
	return 1 + 8 // a number
}

// tableSize is what a table takes in a frame, its length included.
func tableSize(table amqp091.Table) int {
	size := 4
	for name, v := range table {
		size += 1 + len(name) + valueSize(v)
	}
	return size
}
