package janitor

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// Options of a Janitor. Zero means the default.
type Options struct {
	// Open opens the directory, anew for each pass; the janitor closes it.
	// Required; see OpenPath and Bare.
	Open func() (int, error)

	// Name is what the directory is called in the log.
	Name string

	// Route takes the messages, and Format decodes the files. Required.
	Route  *queue.Route
	Format ingest.Format

	// Host, UserName and Provenance are those of the file system: what messages
	// say of where they come from. Default nothing.
	Host       string
	UserName   func(uid uint32) string
	Provenance bool

	// ID is that of the store, 16 hexadecimal digits: claims of the same store
	// are taken back at once. Required.
	ID string

	// FileLimit is the size in bytes of a file from which it is not taken,
	// MessageLimit that of a file that is one message. Defaults 64 MiB, 16 MiB.
	FileLimit, MessageLimit int64

	// Age is how long a file must not have changed. Default 1 min. Negative
	// takes all that is not known to be open for writing.
	Age time.Duration

	// HeldFor is how old a file with a temporary name must be before it is set
	// aside. Default 24 h.
	HeldFor time.Duration

	// ClaimTimeout is how long a claim of another janitor is not renewed before
	// it is taken over. Default 5 min.
	ClaimTimeout time.Duration

	// Interval is the wait between two passes. Default Age/4, 100 ms to 15 s.
	Interval time.Duration

	// Bare says that the directory is that below a mount: its subdirectories are
	// emptied, too, and nothing of ours stays in it. What is no message becomes a
	// dead letter or a partial file. In other directories a file that holds no
	// message is moved to a quarantine directory beside it.
	Bare bool

	// Logger takes what has no caller left. Default slog.Default.
	Logger *slog.Logger

	clock clock
	// step is called at each step of a file's way, for tests that crash there.
	step func(string)
}

const minInterval = 100 * time.Millisecond

func (o *Options) ensureDefaults() {
	if o.FileLimit == 0 {
		o.FileLimit = 64 << 20
	}
	if o.MessageLimit == 0 {
		o.MessageLimit = 16 << 20
	}
	if o.Age == 0 {
		o.Age = time.Minute
	}
	if o.HeldFor == 0 {
		o.HeldFor = 24 * time.Hour
	}
	if o.ClaimTimeout == 0 {
		o.ClaimTimeout = 5 * time.Minute
	}
	if o.Interval == 0 {
		o.Interval = min(max(o.Age/4, minInterval), 15*time.Second)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.clock.mono == nil {
		o.clock = systemClock(o.Bare)
	}
	if o.step == nil {
		o.step = func(string) {}
	}
}

func (o *Options) validate() error {
	switch {
	case o.Open == nil || o.Route == nil || o.Format == nil:
		return errors.New("janitor: Open, Route and Format are required")
	case len(o.ID) != idLength:
		return fmt.Errorf("janitor: id %q: want %d hexadecimal digits", o.ID, idLength)
	}
	return nil
}
