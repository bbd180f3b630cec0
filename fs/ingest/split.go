package ingest

import (
	"bytes"
	"crypto/md5"
	"crypto/sha512"
	"strings"

	"spoolfs/queue"
)

// SplitCode is the number by which sr3c spreads its messages over several
// exchanges (post_exchangeSplit): modulo the number of exchanges it is that of the
// exchange. It is the code of one character of the checksum, as v02 spells it;
// directories have 0.
//
// m is a message that [Sarracenia] has decoded.
func SplitCode(m *queue.Message) int {
	switch m.ContentType {
	case "text/plain":
		for _, h := range m.Headers {
			if h.Name == "sum" {
				return codeOf(h.Value)
			}
		}
	case "application/json":
		return codeOf(checksum(objectMembers(bytes.TrimSpace(m.Body))))
	}
	return 0
}

// codeOf picks the character of a checksum in the spelling of v02, a letter, a
// comma and digits, that stands where the digest would end if it were spelled in
// bytes.
func codeOf(sum string) int {
	at := 0
	switch letter, _, _ := strings.Cut(sum, ","); letter {
	case "s", "L", "R", "p":
		at = sha512.Size
	case "d", "n":
		at = md5.Size
	case "0":
		at = 4
	case "z":
		at = 1
	default: // m and r: directories
		return 0
	}
	if at >= len(sum) {
		return 0
	}
	return int(sum[at])
}

// checksum spells what sr3c takes for the checksum of a v03 message.
func checksum(fields members) string {
	value, _ := fields.last("fileOp")
	op := objectMembers(value)
	_, isDirectory := op.last("directory")
	link, isLink := op.last("link")
	_, isRemove := op.last("remove")
	switch {
	case isDirectory:
		return "m,"
	case isLink:
		return sha512Sum("L", []byte(headerText(link)))
	case isRemove:
		name := baseName(fields) // without its first letter, a slip that has to stay
		return sha512Sum("R", name[min(1, len(name)):])
	}
	var t headerTable
	if t.setSum(fields) != "" {
		return ""
	}
	return t[0].Value
}
