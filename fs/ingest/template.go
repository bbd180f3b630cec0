package ingest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// template is text with fields in it, "sensors.${name}". "$$" is a dollar.
type template []templatePart

// templatePart is text, or the field of a name.
type templatePart struct{ text, field string }

// fieldNames are the fields of templates, for people.
var fieldNames = []string{"name", "base", "ext", "dir", "path", "host", "uid", "gid", "user", "date", "time"}

// field returns what a field stands for.
func (o *Origin) field(name string) string {
	dir, base := "", o.Path
	if i := strings.LastIndexByte(o.Path, '/'); i >= 0 {
		dir, base = o.Path[:i], o.Path[i+1:]
	}
	switch name {
	case "name":
		return base
	case "base":
		return strings.TrimSuffix(base, "."+extension(base))
	case "ext":
		return extension(base)
	case "dir":
		return strings.ReplaceAll(dir, "/", ".")
	case "path":
		return o.Path
	case "host":
		return o.Host
	case "user":
		return o.User
	case "date":
		return o.Time.UTC().Format("20060102")
	case "time":
		return o.Time.UTC().Format("20060102T150405Z")
	}
	return o.number(name)
}

func (o *Origin) number(name string) string {
	switch {
	case name == "uid":
		return strconv.FormatUint(uint64(o.UID), 10)
	case name == "gid" && o.GID >= 0:
		return strconv.FormatInt(o.GID, 10)
	}
	return ""
}

// extension is what follows the last dot of a name, if anything stands before it.
func extension(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[i+1:]
	}
	return ""
}

// parseTemplate reads a template. Its errors are for whoever wrote it.
func parseTemplate(text string) (template, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("%q is not UTF-8", text)
	}
	var t template
	for text != "" {
		before, after, found := strings.Cut(text, "$")
		if before != "" {
			t = append(t, templatePart{text: before})
		}
		if !found {
			break
		}
		if rest, ok := strings.CutPrefix(after, "$"); ok {
			t, text = append(t, templatePart{text: "$"}), rest
			continue
		}
		field, rest, ok := strings.Cut(strings.TrimPrefix(after, "{"), "}")
		if !ok || !strings.HasPrefix(after, "{") {
			return nil, fmt.Errorf("want ${field} or $$ at %q", "$"+after)
		}
		if !slices.Contains(fieldNames, field) {
			return nil, unknownField(field)
		}
		t, text = append(t, templatePart{field: field}), rest
	}
	return t, nil
}

func unknownField(field string) error {
	for _, name := range fieldNames {
		if strings.EqualFold(name, field) || levenshtein.ComputeDistance(name, strings.ToLower(field)) <= 1+len(name)/4 {
			return fmt.Errorf("unknown field ${%s}, did you mean ${%s}?", field, name)
		}
	}
	return fmt.Errorf("unknown field ${%s}: there are ${%s}", field, strings.Join(fieldNames, "}, ${"))
}

// uses reports whether a field stands in the template.
func (t template) uses(field string) bool {
	return slices.ContainsFunc(t, func(p templatePart) bool { return p.field == field })
}

// expand returns the text for a file. An empty ${dir} takes a dot beside it along,
// so that "${dir}.${base}" is good for files at the top, too. Bytes that are not
// UTF-8 are percent-escaped, since consumers could not read them.
func (t template) expand(o *Origin) string {
	var out []byte
	for i, p := range t {
		text := p.text
		if p.field != "" {
			text = percentEscape(o.field(p.field))
		}
		switch {
		case i > 0 && t[i-1].field == "dir" && o.field("dir") == "":
			text = strings.TrimPrefix(text, ".")
		case p.field == "dir" && text == "" && i == len(t)-1:
			out = bytes.TrimSuffix(out, []byte("."))
		}
		out = append(out, text...)
	}
	return string(out)
}

// percentEscape escapes what is not UTF-8.
func percentEscape(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&out, "%%%02X", text[0])
		} else {
			out.WriteString(text[:n])
		}
		text = text[n:]
	}
	return out.String()
}
