package fs

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"spoolfs/queue"
)

// messageText shows a message to people and scripts: lines of a key and a value,
// sorted and without those that are empty, an empty line, and the body as it is.
//
// In values a backslash is "\\" and what is not printable an escape of Go, such
// as "\n" or "\xff". "words" are those of the routing key, without the topic
// prefix, with dots between them.
func messageText(e queue.Entry) []byte {
	m := e.Message
	lines := []string{
		keyValue("attempts", strconv.FormatUint(uint64(m.Attempts), 10)),
		keyValue("id", string(m.ID)),
		keyValue("line", strconv.FormatUint(uint64(m.Line), 10)),
		keyValue("size", strconv.Itoa(len(m.Body))),
		keyValue("uid", strconv.FormatUint(uint64(m.UID), 10)),
	}
	if m.HasKey {
		lines = append(lines, keyValue("key", m.Key))
	}
	for key, value := range map[string]string{
		"content_encoding": m.ContentEncoding,
		"content_type":     m.ContentType,
		"due":              timeText(dueTime(e.Place)),
		"exchange":         m.Exchange,
		"file":             m.File,
		"ingested":         timeText(m.Ingested),
		"pub_time":         timeText(m.PubTime),
		"reason":           m.Reason,
		"words":            strings.Join(m.Words, "."),
	} {
		if value != "" {
			lines = append(lines, keyValue(key, value))
		}
	}
	for _, h := range m.Headers {
		lines = append(lines, keyValue("header."+strings.ReplaceAll(escape(h.Name), " ", `\x20`), h.Value))
	}
	for _, p := range m.Properties {
		lines = append(lines, keyValue("property."+p.Name, p.Value))
	}
	slices.Sort(lines)
	return append([]byte(strings.Join(lines, "")+"\n"), m.Body...)
}

func keyValue(key, value string) string { return key + " " + escape(value) + "\n" }

// escape makes one line of printable text of a value.
func escape(value string) string {
	quoted := strconv.Quote(value)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

func dueTime(p queue.Place) time.Time {
	if p.Due == 0 {
		return time.Time{}
	}
	return time.Unix(0, p.Due)
}

func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// messageName is the name of a message in a directory of the tree.
func messageName(dir statusID, e queue.Entry) string {
	name := string(e.ID)
	if strings.HasPrefix(e.Reason, corruptReason) || name == "" {
		// What cannot be decoded has another ID each time that it is read.
		name = fmt.Sprintf("corrupt-%d", e.Place.Seq)
	}
	if dir.kind == kindPartialDir {
		name = e.File + "." + name
	}
	return escapeName(name)
}

// corruptReason is what the reason begins with when a stored record cannot be
// decoded.
const corruptReason = "corrupt-record"

// escapeName makes a file name of any text: "/", "%" and NUL are written as in
// URLs, and what gets too long ends in a hash.
func escapeName(text string) string {
	name := nameEscapes.Replace(text)
	if len(name) <= maxName {
		return name
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	return fmt.Sprintf("%s~%016x", name[:maxName-17], h.Sum64())
}

var nameEscapes = strings.NewReplacer("/", "%2F", "%", "%25", "\x00", "%00")
