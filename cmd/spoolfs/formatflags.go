package main

import (
	"errors"
	"os"

	"spoolfs/fs/ingest"
)

// formatFlags say what the files of a route hold, and what becomes of it.
type formatFlags struct {
	Format      string   `reload:"restart" default:"sarracenia" enum:"${formats}" help:"What files hold: sarracenia, a record a line; amqp, a JSON object a line with all that AMQP can say; raw, where the file is the message (${default})."`
	RoutingKey  string   `placeholder:"KEY" help:"Routing key for --format=raw, such as '$${dir}.$${base}': $${name} of the file, its base without the ext, ext, dir with dots, path, host, uid, gid, user, date and time (UTC); $$$$ is a dollar."`
	Header      []string `sep:"none" placeholder:"NAME=VALUE" help:"Header of each message for --format=raw, with fields as --routing-key. May be given more than once."`
	ContentType string   `placeholder:"TYPE" help:"Content type of all messages for --format=raw (that of the file name's extension)."`
	Provenance  bool     `reload:"restart" help:"Say in headers where each message comes from: x-spool-host, -uid, -gid, -user, -pid, -job and -ingested-at. Not for --format=sarracenia."`
}

// settings are what the format is told; with subjects, messages are to say what they are
// about.
func (f *routeFlags) settings(subjects bool) ingest.Settings {
	return ingest.Settings{
		TopicPrefix: f.TopicPrefix, MaxLine: int(f.MessageLimit),
		RoutingKey: f.RoutingKey, Headers: f.Header, ContentType: f.ContentType, Subjects: subjects,
	}
}

// decoder is what decodes the files.
func (f *routeFlags) decoder(subjects bool) (ingest.Format, error) {
	return ingest.New(f.Format, f.settings(subjects))
}

// checkFormat refuses what the format cannot do.
func (f *routeFlags) checkFormat() error {
	_, err := f.decoder(false)
	var setting *ingest.SettingError
	switch {
	case errors.As(err, &setting):
		return badSetting(setting.Setting, "%s", setting.Problem)
	case err != nil:
		return badSetting("format", "%v", err)
	case f.Provenance && f.Format == "sarracenia":
		return badSetting("provenance", "it is not for format sarracenia, whose subscribers get what Sarracenia would send")
	}
	return nil
}

// userNames looks up the names of users, or is nil if nobody needs them.
func (f *routeFlags) userNames(format ingest.Format) func(uint32) string {
	raw, ok := format.(interface{ Uses(field string) bool })
	if !f.Provenance && !(ok && raw.Uses("user")) {
		return nil
	}
	return newUserNames().name
}

// hostName is the name of this host, or "" if it has none.
func hostName() string {
	name, _ := os.Hostname()
	return name
}
