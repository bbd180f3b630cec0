package ingest

import (
	"bytes"
	"crypto/md5"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"spoolfs/queue"
)

// headerTable is the header table of a v02 message: what v03 says with fields
// of its own. The checksums in it are part of the format and protect nothing.
type headerTable []queue.Header

// set sets a header, in its place if there is one of that name.
func (t *headerTable) set(name, value string) {
	for i := range *t {
		if (*t)[i].Name == name {
			(*t)[i].Value = value
			return
		}
	}
	t.add(name, value)
}

// add appends a header whose name is new.
func (t *headerTable) add(name, value string) {
	*t = append(*t, queue.Header{Name: name, Value: value})
}

// setParts says how large the file is and how it is divided.
func (t *headerTable) setParts(fields members) (reason string) {
	if value, ok := fields.last("size"); ok {
		size, ok := integer(value)
		if !ok {
			return ReasonV02BadSize
		}
		t.set("parts", "1,"+size+",1,0,0")
	}
	value, ok := fields.last("blocks")
	if !ok {
		return ""
	}
	blocks := objectMembers(value)
	words := []string{"p"}
	if method, _ := blocks.last("method"); headerText(method) == "inplace" {
		words[0] = "i"
	}
	for _, name := range [...]string{"size", "count", "remainder", "number"} {
		value, _ := blocks.last(name)
		number, ok := integer(value)
		if !ok {
			return ReasonV02BadBlocks
		}
		words = append(words, number)
	}
	t.set("parts", strings.Join(words, ","))
	return ""
}

// integer reads a value that is a whole number or a string of one.
func integer(value []byte) (string, bool) {
	n, err := strconv.ParseInt(headerText(value), 10, 64)
	return strconv.FormatInt(n, 10), err == nil
}

// setSum says what the checksum of the content is, or for want of one that of
// the name.
func (t *headerTable) setSum(fields members) (reason string) {
	value, ok := fields.last("identity")
	if !ok {
		value, ok = fields.last("integrity") // the name before 2023
	}
	if !ok {
		sum := md5.Sum(baseName(fields))
		t.set("sum", "n,"+hex.EncodeToString(sum[:]))
		return ""
	}
	method, sum := methodAndSum(value)
	letter := sumLetter(method)
	switch letter {
	case "":
		return ReasonV02BadIdentity
	case "0", "a":
	case "z":
		sum = sumLetter(sum)
	default:
		raw, err := base64.StdEncoding.DecodeString(sum)
		if err != nil {
			return ReasonV02BadIdentity
		}
		sum = hex.EncodeToString(raw)
	}
	if sum == "" {
		return ReasonV02BadIdentity
	}
	t.set("sum", letter+","+sum)
	return ""
}

// methodAndSum reads an identity. sr3 also writes "cod,sha512" where it means
// {"method": "cod", "value": "sha512"}.
func methodAndSum(identity []byte) (method, sum string) {
	if text, ok := stringValue(identity); ok {
		method, sum, _ = strings.Cut(string(text), ",")
		return method, sum
	}
	fields := objectMembers(identity)
	m, _ := fields.last("method")
	s, _ := fields.last("value")
	return headerText(m), headerText(s)
}

// sumLetter is how v02 names a method of checksums.
func sumLetter(method string) string {
	switch method {
	case "random":
		return "0"
	case "arbitrary":
		return "a"
	case "md5":
		return "d"
	case "md5name":
		return "n"
	case "sha512":
		return "s"
	case "cod":
		return "z"
	}
	return ""
}

// setFileOp says what happened if it is not that a file was written.
func (t *headerTable) setFileOp(fields members) {
	value, _ := fields.last("fileOp")
	op := objectMembers(value)
	if old, ok := op.last("rename"); ok {
		t.set("oldname", headerText(old))
	}
	link, isLink := op.last("link")
	_, isRemove := op.last("remove")
	_, isDirectory := op.last("directory")
	switch {
	case isLink:
		t.set("link", headerText(link))
		t.set("sum", sha512Sum("L", []byte(headerText(link))))
	case isRemove: // of a directory too: sr3 does not tell them apart
		t.set("sum", sha512Sum("R", baseName(fields)))
	case isDirectory:
		t.set("sum", sha512Sum("m", baseName(fields)))
	}
}

func sha512Sum(letter string, text []byte) string {
	return fmt.Sprintf("%s,%x", letter, sha512.Sum512(text))
}

// baseName is the last component of the path.
func baseName(fields members) []byte {
	value, _ := fields.last("relPath")
	path, _ := stringValue(value)
	return path[bytes.LastIndexByte(path, '/')+1:]
}
