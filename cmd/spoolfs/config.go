package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// configField is a setting of a running program: its key in files, its value,
// and the field it is in.
type configField struct {
	key   string
	field reflect.StructField
	value reflect.Value
}

// configFields lists the settings in a struct of flags, in its order.
func configFields(flags any) []configField {
	return fieldsOf(reflect.Indirect(reflect.ValueOf(flags)))
}

func fieldsOf(flags reflect.Value) []configField {
	var all []configField
	for i := range flags.NumField() {
		field, value := flags.Type().Field(i), flags.Field(i)
		switch {
		case field.Anonymous && value.Kind() == reflect.Struct:
			all = append(all, fieldsOf(value)...)
		case field.IsExported():
			name := flagName(field.Name)
			if tag := field.Tag.Get("name"); tag != "" {
				name = strings.ReplaceAll(tag, "-", "_")
			}
			all = append(all, configField{name, field, value})
		}
	}
	return all
}

// texts are the value as people write it, a list as several. Passwords are not
// shown, neither in URLs nor in fields of that name.
func (f configField) texts() []string {
	if f.value.Kind() != reflect.Slice {
		return []string{maskedText(f.field.Name, f.value)}
	}
	texts := []string{}
	for i := range f.value.Len() {
		texts = append(texts, maskedText(f.field.Name, f.value.Index(i)))
	}
	return texts
}

// configLines writes what flags are set to as sorted lines of a key and its
// value, those of routes as routes.NAME.key. Where a value is not the default a line
// of key.from says where it comes from.
func configLines(flags any, from origins, routes ...*routeConfig) []byte {
	lines := settingLines("", flags, from)
	for _, r := range routes {
		lines = append(lines, settingLines(routesKey+"."+r.name+".", r, r.origins)...)
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

func settingLines(prefix string, flags any, from origins) (lines []string) {
	for _, f := range configFields(flags) {
		lines = append(lines, prefix+f.key+" "+strings.Join(f.texts(), " ")+"\n")
		if origin := from[f.key]; origin != "" && origin != originDefault {
			lines = append(lines, prefix+f.key+".from "+origin+"\n")
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

func maskedText(field string, value reflect.Value) string {
	text := fmt.Sprint(value.Interface())
	switch {
	case strings.HasSuffix(field, "Password") && text != "":
		return "(not shown)"
	case field == "Broker", strings.Contains(text, "://"):
		text = maskURL(text)
	}
	return strings.ReplaceAll(text, "\n", " ")
}
