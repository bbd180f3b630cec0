package queue

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options of a queue. The zero value is good.
type Options struct {
	// LockTimeout is how long Open waits for the lock of a store whose last
	// owner is just dying. Default 5 s; negative does not wait.
	LockTimeout time.Duration

	// CommitGrace is how long ready messages wait for a stage that was put
	// before them and is not committed yet. Default 100 ms.
	CommitGrace time.Duration

	// Limits bound what the queue takes.
	Limits Limits

	// Logger takes what Pebble reports. Default slog.Default.
	Logger *slog.Logger

	// FS is the file system of the store. Default the operating system's;
	// tests use one that crashes.
	FS vfs.FS

	// mediumPatience is how long a read is tried that the disk refuses.
	mediumPatience time.Duration

	// syncs counts how long the disk takes to make writes durable.
	syncs *Durations
}

func (o *Options) ensureDefaults() {
	if o.LockTimeout == 0 {
		o.LockTimeout = 5 * time.Second
	}
	if o.CommitGrace == 0 {
		o.CommitGrace = 100 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.mediumPatience == 0 {
		o.mediumPatience = defaultPatience
	}
	if o.syncs == nil {
		o.syncs = &Durations{}
	}
}
