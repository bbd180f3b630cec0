package main

import (
	"errors"
	"time"

	"github.com/alecthomas/units"
)

// routeFlags are the settings of a route: what its files hold, and where its
// messages go. Those on the command line and at the top level of a file are the
// settings of the default route, which is the root of the mount.
//
// All of them can change while the daemon runs, except those with
// reload:"restart".
type routeFlags struct {
	brokerFlags `embed:""`
	formatFlags `embed:""`
	followFlags `embed:""`
	policyFlags `embed:""`

	FileLimit    units.Base2Bytes `default:"64MiB" placeholder:"SIZE" help:"Size of a file, as far as it is not committed in instalments yet (${default})."`
	MessageLimit units.Base2Bytes `default:"16MiB" placeholder:"SIZE" help:"Size of a message; a longer line is set aside (${default})."`
	Linger       time.Duration    `default:"5s" help:"How long a file with a record a line stays open after its last close or fsync before its whole lines are committed (${default})."`
	HeldFor      time.Duration    `default:"24h" help:"How long a file with a temporary name waits for its rename before it is set aside (${default})."`
}

// check refuses what cannot work before anything is touched.
func (f *routeFlags) check() error {
	if err := f.brokerFlags.check(); err != nil {
		return err
	}
	if err := f.checkFormat(); err != nil {
		return err
	}
	if err := f.policyFlags.check(); err != nil {
		return err
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
