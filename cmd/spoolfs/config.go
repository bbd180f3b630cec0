package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// configLines writes what flags are set to as sorted lines of a key and its
// value, with the names of the flags. Passwords are not shown, neither in URLs
// nor in flags of that name.
func configLines(flags any) []byte {
	lines := flagLines(reflect.Indirect(reflect.ValueOf(flags)))
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

func flagLines(flags reflect.Value) []string {
	var lines []string
	for i := range flags.NumField() {
		field, value := flags.Type().Field(i), flags.Field(i)
		switch {
		case field.Anonymous && value.Kind() == reflect.Struct:
			lines = append(lines, flagLines(value)...)
		case !field.IsExported():
		default:
			name := flagName(field.Name)
			if tag := field.Tag.Get("name"); tag != "" {
				name = strings.ReplaceAll(tag, "-", "_")
			}
			lines = append(lines, name+" "+flagText(field.Name, value)+"\n")
		}
	}
	return lines
}

// flagName is the name of a flag as kong makes it of the field, with
// underscores: MaxBytes is max_bytes.
func flagName(field string) string {
	var b strings.Builder
	runes := []rune(field)
	for i, r := range runes {
		starts := unicode.IsUpper(r) && i > 0 &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if starts {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func flagText(field string, value reflect.Value) string {
	if value.Kind() == reflect.Slice {
		var texts []string
		for i := range value.Len() {
			texts = append(texts, flagText(field, value.Index(i)))
		}
		return strings.Join(texts, " ")
	}
	text := fmt.Sprint(value.Interface())
	switch {
	case strings.HasSuffix(field, "Password") && text != "":
		return "(not shown)"
	case strings.Contains(text, "://"):
		text = maskURL(text)
	}
	return strings.ReplaceAll(text, "\n", " ")
}
