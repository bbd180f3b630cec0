package fs

import (
	"log/slog"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// Options of a file system.
type Options struct {
	// Route takes the messages. Required.
	Route *queue.Route

	// Format decodes the files. Required.
	Format ingest.Format

	// FileLimit is the largest size of a file in bytes. Default 64 MiB.
	FileLimit int64

	// BufferLimit bounds the bytes that all open files hold in memory
	// together. Default 512 MiB.
	BufferLimit int64

	// Status lists the files of the status directory.
	Status []StatusFile

	// StatusGroup is the group of the operators: besides root they may look into
	// messages and give commands. Default none.
	StatusGroup uint32

	// Logger takes what has no caller left. Default slog.Default.
	Logger *slog.Logger
}

// StatusFile is a virtual file of the status directory.
type StatusFile struct {
	Name string

	// Content makes the content anew. It must not wait.
	Content func() []byte

	// Private says that it is for root and the group of operators only.
	Private bool
}

func (o *Options) ensureDefaults() {
	if o.FileLimit == 0 {
		o.FileLimit = 64 << 20
	}
	if o.BufferLimit == 0 {
		o.BufferLimit = 512 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}
