package fs

import (
	"log/slog"
	"time"

	"spoolfs/fs/ingest"
	"spoolfs/fs/shm"
	"spoolfs/queue"
)

// Options of a file system.
type Options struct {
	// Route takes the messages. Required.
	Route *queue.Route

	// Format decodes the files. Required.
	Format ingest.Format

	// Routes are those besides that of the root, which has the Route above.
	// SetRoutes changes them.
	Routes []RouteOptions

	// Memory is what outlives this process, of which another may have served the
	// mount before. By default the file system makes one for itself.
	Memory *shm.Memory

	// Store is a name of the store that no other has. What is open in a memory
	// that belongs to another one is not taken over. Default: nobody asks.
	Store string

	// Host is the name of this host, for messages that say where they come from.
	Host string

	// UserName returns the name of a user, for such messages, or is nil. Requests
	// wait for it.
	UserName func(uid uint32) string

	// Provenance has the headers of each message say where it comes from, see
	// [ingest.AddProvenance].
	Provenance bool

	// FileLimit is the largest size of a file in bytes; of a file that is
	// committed in instalments, of what is not committed yet. Default 64 MiB.
	FileLimit int64

	// MessageLimit is the largest size in bytes of a file that is one message.
	// Default 16 MiB.
	MessageLimit int64

	// BufferLimit bounds the bytes that all open files hold in memory
	// together. Default 512 MiB.
	BufferLimit int64

	// OpenLimit bounds the open files, held files and directories of users
	// together. Default 262,144.
	OpenLimit int64

	// UserShare is the part of the last two that one user may have; root may
	// have all. Default 0.5.
	UserShare float64

	// Linger is how long a file of a line format stays open after it has been
	// flushed last before its whole lines are committed. Default 5 s.
	Linger time.Duration

	// StoreTimeout is how long a request waits for the disk of the store before
	// it is answered with EIO. Default 60 s.
	StoreTimeout time.Duration

	// HeldFor is how long a held file waits for its rename before it is set
	// aside. Default 24 h.
	HeldFor time.Duration

	// Status lists the files of the status directory.
	Status []StatusFile

	// StatusGroup is the group of the operators: besides root they may look into
	// messages and give commands. Default none.
	StatusGroup uint32

	// Commands are those that operators may write to .status/ctl, by their word.
	Commands map[string]Command

	// Logger takes what has no caller left. Default slog.Default.
	Logger *slog.Logger
}

// StatusFile is a virtual file of the status directory.
type StatusFile struct {
	Name string

	// Content makes the content anew. It must not wait.
	Content func() []byte

	// Pages makes the content of the files that are called Name, a dot and a key,
	// which are not listed. It may wait for the disk; what is not there is ENOENT.
	// Default none.
	Pages func(key string) ([]byte, error)

	// Private says that it is for root and the group of operators only.
	Private bool

	// Sink begins to take what one of them writes to the file. Default none: it
	// cannot be written to.
	Sink func() Sink
}

// Command is something that an operator can ask for. It has Run or Begin; with
// both, Begin is for the word with arguments, the first of which has a "=" in it.
type Command struct {
	Help string // a line for people

	// Run does it. It must not wait.
	Run func() error

	// Begin begins it with what stands behind its word on the line, for the
	// user uid. It must not wait, and EINVAL says that it does not understand
	// the arguments.
	Begin func(args []string, uid uint32) error
}

func (o *Options) ensureDefaults() {
	if o.OpenLimit == 0 {
		o.OpenLimit = 1 << 18
	}
	if o.UserShare == 0 {
		o.UserShare = 0.5
	}
	if o.StoreTimeout == 0 {
		o.StoreTimeout = time.Minute
	}
	if o.BufferLimit == 0 {
		o.BufferLimit = 512 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// root are the settings of the root's route.
func (o *Options) root() *RouteOptions {
	r := &RouteOptions{
		Queue: o.Route, Format: o.Format, UserName: o.UserName, Provenance: o.Provenance,
		FileLimit: o.FileLimit, MessageLimit: o.MessageLimit, Linger: o.Linger, HeldFor: o.HeldFor,
	}
	r.ensureDefaults()
	return r
}
