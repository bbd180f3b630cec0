package keeper

import (
	"errors"
	"log/slog"
	"syscall"
	"time"
)

// Options of a keeper.
type Options struct {
	// Binary is the path of the program of the workers, which takes the words
	// "worker" and the mountpoint. Required.
	Binary string

	// Dir is the mountpoint. Required.
	Dir string

	// Source is what the mount is said to be of. Default "spoolfs".
	Source string

	// Start is how a worker is told to start; Keeper is filled in.
	Start Start

	// Credential is the user of the workers. Default that of the keeper.
	Credential *syscall.Credential

	// RequestTimeout is how long a worker may take for a request, and how long it
	// may be silent. Default 30 s.
	RequestTimeout time.Duration

	// WorkerTimeout is how long writers wait for a worker before they get an
	// error. Default 60 s.
	WorkerTimeout time.Duration

	// StopTimeout is how long a worker may take to drain or to yield before it is
	// killed. Default 60 s.
	StopTimeout time.Duration

	// OOMScore is the oom_score_adj of the workers. Default: that of the keeper.
	OOMScore string

	// Detach says that the keeper and its worker stay in the process group of who
	// has started them until the mount is there, and leave it then: a mount of
	// autofs lets nobody else come near the mountpoint before. Default: workers
	// have a group of their own from the beginning.
	Detach bool

	// Verify tells whether the program on disk can take over, with the memory that
	// there is. Default: yes.
	Verify func(memoryFD int) error

	// NoResend says that the kernel is not asked to send requests again after the
	// death of a worker: they are taken from the memory, as on kernels that
	// cannot. For a mount that is new.
	NoResend bool

	// Manager is the service manager. Default none.
	Manager *Manager

	// Logger takes what happens to workers. Default slog.Default.
	Logger *slog.Logger
}

func (o *Options) ensureDefaults() {
	if o.Source == "" {
		o.Source = "spoolfs"
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = 30 * time.Second
	}
	if o.WorkerTimeout == 0 {
		o.WorkerTimeout = time.Minute
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = time.Minute
	}
	if o.Verify == nil {
		o.Verify = func(int) error { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

func (o *Options) validate() error {
	switch {
	case o.Binary == "" || o.Dir == "":
		return errors.New("keeper needs a binary and a mountpoint")
	case min(o.RequestTimeout, o.WorkerTimeout, o.StopTimeout) < 0:
		return errors.New("keeper: a timeout is negative")
	}
	return nil
}
