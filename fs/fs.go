package fs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/time/rate"

	"spoolfs/fs/shm"
)

// FS is the file system. Its methods in the files *_ops.go are called by the
// connection, from many goroutines at once.
type FS struct {
	fuse.RawFileSystem // refuses what is not implemented here

	opts    Options
	memory  *shm.Memory
	table   *shm.Table
	started time.Time
	usage   usage
	tree    *statusTree // of .status; requests on its nodes are handed to it

	// now and processOf are time.Now and processOf, except in tests.
	now       func() time.Time
	processOf func(thread uint32) process

	// wrap, if not nil, stands between the connection and the handlers, in tests.
	wrap func(fuse.RawFileSystem) fuse.RawFileSystem

	// seesAll says that we may see how processes of other users end.
	seesAll bool

	// large holds a token for each large file that is being staged.
	large chan struct{}

	// overdue are the held files whose setting aside has failed. Used by tend only.
	overdue []*file

	// server serves the mount; nil before and after. cannotPrune says that this
	// kernel cannot be told to forget nodes.
	server      atomic.Pointer[server]
	cannotPrune atomic.Bool

	files    atomic.Uint64
	messages atomic.Uint64
	dead     atomic.Uint64
	partial  atomic.Uint64
	repeated atomic.Uint64

	// asideLog bounds what is logged, unlogged counts what is not.
	asideLog *rate.Limiter
	unlogged atomic.Uint64
	unknown  atomic.Uint64
	errors   atomic.Uint64
	panics   atomic.Uint64
	tuned    atomic.Pointer[Options] // for what Tune can change
	jobs     atomic.Bool             // a route wants to know which job wrote a file
	refused  [len(refusals)]atomic.Uint64
	took     operations

	mu       tables
	noted    noted
	root     *dir
	routes   []*route // by their numbers; never changed in place
	dirs     map[uint64]*dir
	nodes    map[uint64]*node
	held     map[*node]bool
	handles  map[uint64]*handle
	listings map[uint64]listing

	// done are the requests of a former process that have been carried out and
	// may come again, with the value of their outcome.
	done map[uint64]uint64

	// tookOver says that another process has served the mount before.
	tookOver bool

	// expiries says when grace seconds end, in order. stale are the nodes that
	// have ended and that the kernel still knows.
	expiries []expiry
	stale    []uint64

	// draining refuses new files. idle is closed when no file is open for
	// writing any more; nil if nobody waits.
	draining bool
	stopping bool // for good
	idle     chan struct{}
}

// Node ids that never change. Those of files begin at firstNode, and those of
// the status tree are above them all, see statusID.
const (
	rootNode   = 1
	statusNode = 2
	firstNode  = 1 << 10
)

// New makes a file system.
func New(opts Options) (*FS, error) {
	if opts.Route == nil || opts.Format == nil {
		return nil, errors.New("file system needs a route and a format")
	}
	opts.ensureDefaults()
	for _, f := range opts.Status {
		if f.Name == "" || f.Content == nil {
			return nil, fmt.Errorf("status file %q has no name or no content", f.Name)
		}
	}
	memory := opts.Memory
	if memory == nil {
		var err error
		if memory, err = shm.Create(shm.Options{}); err != nil {
			return nil, err
		}
	}
	table, err := shm.OpenTable(memory)
	if err != nil {
		return nil, err
	}
	fs := &FS{
		memory:        memory,
		table:         table,
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		asideLog:      rate.NewLimiter(asideLogRate, asideLogBurst),
		opts:          opts,
		started:       time.Now(),
		now:           time.Now,
		processOf:     processOf,
		seesAll:       seesEndings(),
		dirs:          map[uint64]*dir{},
		nodes:         map[uint64]*node{},
		held:          map[*node]bool{},
		handles:       map[uint64]*handle{},
		listings:      map[uint64]listing{},
		done:          map[uint64]uint64{},
		large:         make(chan struct{}, maxLarge),
	}
	fs.mu.fs = fs
	fs.tuned.Store(&opts)
	fs.usage = usage{
		files: opts.OpenLimit, bytes: opts.BufferLimit, share: opts.UserShare, users: map[uint32]holding{},
	}
	fs.makeRoot()
	fs.tree = newStatusTree(fs)
	return fs, fs.SetRoutes(opts.Routes)
}

// newID draws a number for a node or a file, which was never given to another.
func (fs *FS) newID() uint64 { return firstNode + fs.memory.NextNode() }

func (fs *FS) wrapped() fuse.RawFileSystem {
	if fs.wrap == nil {
		return &timed{failing(fs), &fs.took}
	}
	return &timed{fs.wrap(fs), &fs.took}
}

// String names the file system in messages of go-fuse.
func (fs *FS) String() string { return "spoolfs" }

// Drain refuses new files from now on and waits until those that are open have
// been released, or until ctx ends.
func (fs *FS) Drain(ctx context.Context) error {
	fs.mu.Lock()
	fs.draining, fs.stopping = true, true
	idle := make(chan struct{})
	fs.idle = idle
	fs.checkIdleLocked()
	fs.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d files are still open: %w", fs.Stats().OpenFiles, ctx.Err())
	}
}

// Refuse takes no new files from now on, or takes them again, unless Drain has
// been called.
func (fs *FS) Refuse(on bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.draining = on || fs.stopping
}

func (fs *FS) checkIdleLocked() {
	if fs.idle == nil {
		return
	}
	for _, h := range fs.handles {
		if h.writer {
			return
		}
	}
	close(fs.idle)
	fs.idle = nil
}

// recovered answers a request whose handler has panicked. The mount lives on.
func (fs *FS) recovered(cause any) fuse.Status {
	fs.panics.Add(1)
	fs.opts.Logger.Error("bug: a request panicked and was answered with EIO",
		"cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	return fuse.EIO
}

// guard runs what has no request to answer. A bug in it costs that one run.
func (fs *FS) guard(f func()) {
	defer func() {
		if cause := recover(); cause != nil {
			fs.recovered(cause)
		}
	}()
	f()
}
