package ingest

import (
	"fmt"
	"slices"
	"strings"
)

// Settings are what the formats of a route can be told. Zero means the default.
// A setting that a format has no use for is refused.
type Settings struct {
	// TopicPrefix is that of [SarraceniaOptions]. It has a meaning for the
	// publisher as well, so that any format may have it.
	TopicPrefix string

	// MaxLine is the length in bytes beyond which a line is a dead letter.
	// Default 16 MiB.
	MaxLine int

	// RoutingKey is a template of the routing key.
	RoutingKey string

	// Headers are templates of headers, "NAME=TEMPLATE".
	Headers []string

	// ContentType is that of all messages. Default: that of the extension of
	// the file's name.
	ContentType string

	// Subjects has messages say what they are about: see subject.
	Subjects bool
}

// SettingError says that a setting of a format cannot be used.
type SettingError struct {
	Setting string // "routing_key", "header" or "content_type"
	Problem string
}

// Error implements error.
func (e *SettingError) Error() string { return e.Setting + ": " + e.Problem }

func badSetting(setting, format string, args ...any) error {
	return &SettingError{setting, fmt.Sprintf(format, args...)}
}

// kind is a format by its name.
type kind struct {
	name  string
	takes []string // the settings that others do not have
	make  func(Settings) (Format, error)
}

// kinds are all formats. A new one is a file with its kind, and a line here.
var kinds = []kind{sarraceniaKind, rawKind, amqpKind}

// Names are the names of the formats, the default first.
func Names() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// New returns the format of a name. Errors about a setting are [SettingError].
func New(name string, s Settings) (Format, error) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return nil, fmt.Errorf("format %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	for setting, isSet := range map[string]bool{
		"routing_key": s.RoutingKey != "", "header": len(s.Headers) > 0, "content_type": s.ContentType != "",
	} {
		if isSet && !slices.Contains(kinds[i].takes, setting) {
			return nil, badSetting(setting, "it is for format %s: what format %s makes of a line has its own", takers(setting), name)
		}
	}
	return kinds[i].make(s)
}

// takers names the formats that have a setting.
func takers(setting string) string {
	var names []string
	for _, k := range kinds {
		if slices.Contains(k.takes, setting) {
			names = append(names, k.name)
		}
	}
	return strings.Join(names, ", ")
}
