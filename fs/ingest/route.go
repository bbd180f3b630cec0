package ingest

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// route returns what a record says about its routing key: the whole key, or the
// words that come after the topic prefix. A topic counts only if it is still
// among the public fields, which is what sr3 does.
func route(all, public members, marked bool) (words []string, key string, whole bool) {
	if key, ok := usableKey(all.last("post_topic")); ok {
		return nil, key, true
	}
	if key, ok := usableKey(public.last("topic")); ok {
		return nil, key, true
	}
	value, _ := public.last("relPath")
	path, _ := stringValue(value)
	if marked {
		return pythonWords(path), "", false
	}
	return directories(bytes.TrimPrefix(path, []byte("/"))), "", false
}

// usableKey returns the string in a JSON value if it can be a routing key.
func usableKey(value []byte, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	key, ok := stringValue(value)
	if !ok || !usable(string(key)) {
		return "", false
	}
	return string(key), true
}

func usable(key string) bool { return len(key) <= maxShort && utf8.ValidString(key) }

// pythonWords are the words that sr3 makes of a path. It keeps an empty word
// for a leading slash and escapes the wildcards of AMQP ("%22" for "*" is its
// own invention, which its subscribers undo).
func pythonWords(path []byte) []string {
	words := directories(path)
	for i, word := range words {
		if strings.ContainsAny(word, "#*") {
			word = strings.ReplaceAll(word, "#", "%23")
			words[i] = strings.ReplaceAll(word, "*", "%22")
		}
	}
	return words
}

// directories returns the components of a path but the last, as far as they can
// fit in a routing key: a path of a million slashes shall not cost a million
// words.
func directories(path []byte) []string {
	end := bytes.LastIndexByte(path, '/')
	if end > maxShort {
		end = bytes.LastIndexByte(path[:maxShort+1], '/')
	}
	if end < 0 {
		return nil
	}
	return strings.Split(string(path[:end]), "/")
}

// namedExchange returns the exchange that a record names, or "". A plain string
// in "exchange" is where a consumer of sr3 had got the message from: never
// publish there.
func namedExchange(all members) string {
	if value, ok := all.last("post_exchange"); ok {
		if name, ok := stringValue(value); ok {
			return string(name)
		}
	}
	names, _ := all.last("exchange")
	count := 0
	for range stringElements(names) {
		count++
	}
	if count == 0 {
		return ""
	}
	pick := splitIndex(all) % count
	for name := range stringElements(names) {
		if pick == 0 {
			return string(name)
		}
		pick--
	}
	return ""
}

// splitIndex is the number by which sr3 picks one of several exchanges: its own
// field for that, or the sum of the characters of the checksum. Without one sr3
// loses the batch; we take the first.
func splitIndex(all members) int {
	if value, ok := all.last("exchangeSplitOverride"); ok {
		if n, err := strconv.ParseUint(headerText(value), 10, 31); err == nil {
			return int(n)
		}
	}
	identity, _ := all.last("identity")
	value, _ := objectMembers(identity).last("value")
	text, _ := stringValue(value)
	sum := 0
	for _, r := range string(text) {
		sum += int(r)
	}
	return sum
}
