package ingest

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestNew: each format can be made by its name, and a setting that it has no use for
// is refused.
func TestNew(t *testing.T) {
	if got := Names(); !slices.Equal(got, []string{"sarracenia", "raw", "amqp"}) {
		t.Errorf("the formats are %q", got)
	}
	for _, name := range Names() {
		s := Settings{TopicPrefix: "v03", MaxLine: 100}
		if name == "raw" {
			s.RoutingKey = "k"
		}
		f, err := New(name, s)
		if err != nil || f.Whole() != (name == "raw") {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if _, err := New("rwa", Settings{}); err == nil || !strings.Contains(err.Error(), "raw") {
		t.Errorf("an unknown format: %v", err)
	}
}

func TestNew_Refused(t *testing.T) {
	raw := func(key string, headers ...string) Settings { return Settings{RoutingKey: key, Headers: headers} }
	long := strings.Repeat("x", 256)
	for _, tt := range []struct {
		format string
		s      Settings
		want   string
	}{
		{"sarracenia", raw("k"), "routing_key: it is for format raw"},
		{"amqp", raw("", "a=b"), "header: it is for format raw"},
		{"amqp", Settings{ContentType: "a/b"}, "content_type: it is for format raw"},
		{"raw", raw(""), "routing_key: it is missing"},
		{"raw", raw("a.${Name}"), "unknown field ${Name}, did you mean ${name}?"},
		{"raw", raw("a.${usr}"), "unknown field ${usr}, did you mean ${user}?"},
		{"raw", raw("a.${directory}"), "unknown field ${directory}: there are ${name}, "},
		{"raw", raw("a.$name"), `want ${field} or $$ at "$name"`},
		{"raw", raw("a.${name"), `want ${field} or $$ at "${name"`},
		{"raw", raw("a$"), `want ${field} or $$ at "$"`},
		{"raw", raw("\xff"), "is not UTF-8"},
		{"raw", raw(long + "${name}"), "routing_key: it has 256 bytes: AMQP takes 255"},
		{"raw", raw("k", "novalue"), `header: "novalue": want NAME=VALUE`},
		{"raw", raw("k", "=x"), "want NAME=VALUE"},
		{"raw", raw("k", long+"=x"), "a name has at most 255 bytes"},
		{"raw", raw("k", "a=1", "a=2"), `header: "a" is given twice`},
		{"raw", raw("k", "CC=x"), "RabbitMQ reads further routing keys"},
		{"raw", raw("k", "a=${nme}"), `header: "a": unknown field ${nme}, did you mean ${name}?`},
		{"raw", raw("k", "a="+strings.Repeat("x", 130000)), "header: all headers have"},
		{"raw", Settings{RoutingKey: "k", ContentType: long}, "content_type: it has 256 bytes"},
	} {
		_, err := New(tt.format, tt.s)
		var setting *SettingError
		if !errors.As(err, &setting) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %.60v: %v, want %s", tt.format, tt.s, err, tt.want)
		}
	}
}
