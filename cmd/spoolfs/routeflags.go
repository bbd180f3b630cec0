package main

import (
	"errors"
	"time"

	"github.com/alecthomas/units"

	"spoolfs/fs/ingest"
)

// routeFlags are the settings of a route: what its files hold, and where its
// messages go. Those on the command line and at the top level of a file are the
// settings of the default route, which is the root of the mount.
//
// All of them can change while the daemon runs, except those with
// reload:"restart".
type routeFlags struct {
	brokerFlags `embed:""`

	Format       string           `reload:"restart" default:"sarracenia" enum:"sarracenia,raw" help:"What files hold: sarracenia, a record a line, or raw, where the file is the message (${default})."`
	RoutingKey   string           `placeholder:"KEY" help:"Routing key of all messages, for --format=raw."`
	FileLimit    units.Base2Bytes `default:"64MiB" placeholder:"SIZE" help:"Size of a file, as far as it is not committed in instalments yet (${default})."`
	MessageLimit units.Base2Bytes `default:"16MiB" placeholder:"SIZE" help:"Size of a message; a longer line is set aside (${default})."`
	Linger       time.Duration    `default:"5s" help:"How long a file with a record a line stays open after its last close or fsync before its whole lines are committed (${default})."`
	HeldFor      time.Duration    `default:"24h" help:"How long a file with a temporary name waits for its rename before it is set aside (${default})."`
}

const formatRaw = "raw"

// decoder is what decodes the files.
func (f *routeFlags) decoder() ingest.Format {
	if f.Format == formatRaw {
		return ingest.NewRaw(f.RoutingKey)
	}
	return ingest.NewSarracenia(ingest.SarraceniaOptions{TopicPrefix: f.TopicPrefix, MaxLine: int(f.MessageLimit)})
}

// check refuses what cannot work before anything is touched.
func (f *routeFlags) check() error {
	if err := f.brokerFlags.check(); err != nil {
		return err
	}
	raw := f.Format == formatRaw
	switch {
	case raw && f.RoutingKey == "":
		return withCode(exitUsage, errors.New("--format=raw: give the routing key of the messages with --routing-key=KEY"))
	case !raw && f.RoutingKey != "":
		return badSetting("routing_key", "it is for --format=raw: records have their own")
	case len(f.RoutingKey) > 255:
		return badSetting("routing_key", "it has %d bytes: AMQP takes 255", len(f.RoutingKey))
	}
	return errors.Join(
		wantMore("file_limit", f.FileLimit), wantMore("message_limit", f.MessageLimit),
		wantMore("linger", f.Linger), wantMore("held_for", f.HeldFor),
	)
}

// wantMore refuses what is not more than 0.
func wantMore[T ~int64](key string, value T) error {
	if value <= 0 {
		return badSetting(key, "want more than 0")
	}
	return nil
}
