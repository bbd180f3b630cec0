package ingest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
)

// A subject is what a message is about, for routes in which a later message about the same
// replaces one that waits. It is a digest, as it is stored with each message:
//
//	sarracenia  baseUrl and relPath, with the exchange and the whole routing key if the
//	            record names them. Whatever has happened there (fileOp), the last record
//	            tells. Records of a rename, whose other path would be lost, and of parts of
//	            files have none
//	raw         the path of the file below its route
//	amqp        "subject", if the line has one
func subject(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return string(h.Sum(nil)[:16])
}

// pathSubject is the subject of a record about a path.
func pathSubject(exchange, key string, base, path []byte) string {
	base, path = bytes.TrimRight(base, "/"), bytes.TrimLeft(path, "/")
	return subject(exchange, key, string(base), string(path))
}

// recordSubject is the subject of a v03 record.
func recordSubject(exchange, key string, fields members) string {
	for i := range fields {
		switch string(fields[i].name) {
		case "blocks", "partitionStrategy", "oldname", "newname", "rename":
			return ""
		case "parts":
			if !isWholeFile(headerText(fields[i].value)) {
				return ""
			}
		case "fileOp":
			if _, renames := objectMembers(fields[i].value).last("rename"); renames {
				return ""
			}
		}
	}
	base, _ := fields.last("baseUrl")
	path, _ := fields.last("relPath")
	baseText, _ := stringValue(base)
	pathText, _ := stringValue(path)
	return pathSubject(exchange, key, baseText, pathText)
}

// retrySubject is the subject of a v02 message with its headers.
func retrySubject(key string, headers headerTable, base, path []byte) string {
	for _, h := range headers {
		switch h.Name {
		case "oldname", "newname":
			return ""
		case "parts":
			if !isWholeFile(h.Value) {
				return ""
			}
		}
	}
	return pathSubject("", key, base, path)
}

// isWholeFile reports whether v02's description of a part is that of all of a file.
func isWholeFile(parts string) bool { return strings.HasPrefix(parts, "1,") }
