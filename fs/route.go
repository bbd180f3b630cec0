package fs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// RouteOptions are the settings of a route.
type RouteOptions struct {
	// Queue takes the messages. Required.
	Queue *queue.Route

	// Dir is the name of its directory at the root of the mount. Without one the
	// route takes no new files, and what is in it can be seen in the status tree:
	// one that has been taken out of the configuration. That of the root has none
	// either.
	Dir string

	// Format decodes the files. Required with a directory. If nobody knows it any
	// more it is nil: the settings that were known last go on, and if there are
	// none, what is not decoded yet becomes a dead letter as it is.
	Format ingest.Format

	// UserName returns the name of a user, for messages that say where they come
	// from, or is nil. Requests wait for it.
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

	// Linger is how long a file of a line format stays open after it has been
	// flushed last before its whole lines are committed. Default 5 s.
	Linger time.Duration

	// HeldFor is how long a held file waits for its rename before it is set
	// aside. Default 24 h.
	HeldFor time.Duration
}

func (o *RouteOptions) ensureDefaults() {
	if o.FileLimit == 0 {
		o.FileLimit = 64 << 20
	}
	if o.MessageLimit == 0 {
		o.MessageLimit = 16 << 20
	}
	if o.Linger == 0 {
		o.Linger = 5 * time.Second
	}
	if o.HeldFor == 0 {
		o.HeldFor = 24 * time.Hour
	}
	if o.Format == nil {
		o.Format = noFormat{}
	}
}

// route is a route of the queue and what the mount knows of it.
type route struct {
	queue *queue.Route
	dir   *dir // its top

	// tuned is what can change while files are open.
	tuned atomic.Pointer[RouteOptions]
}

func (r *route) format() ingest.Format { return r.tuned.Load().Format }

// isGone reports whether the route has no directory any more.
func (r *route) isGone() bool { return r.tuned.Load().Dir == "" && r.dir.id != rootNode }

// maxRouteID bounds the numbers of routes, which are part of node ids.
const maxRouteID = maxRoutes - 1

// Node ids of a route and of what is in it, so that they mean the same to the next
// process, and an OPEN of a node that is gone finds its route:
//
//	1<<62 | route<<routeDirShift       its directory
//	1<<62 | route<<routeDirShift | n   its standing directory +(n-1)
//	route<<routeNodeShift | number     a file in it; of the root's route without the number of the route
const (
	routeDirBit    = 1 << 62
	routeDirShift  = 9
	routeNodeShift = 48
)

// newNodeID draws a number for a node in a route.
func (fs *FS) newNodeID(r *route) uint64 {
	if r.dir == fs.root {
		return fs.newID()
	}
	return fs.newID() | uint64(r.queue.ID())<<routeNodeShift
}

// routeOfNodeLocked is the route of a node, also of one that is gone.
func (fs *FS) routeOfNodeLocked(id uint64) *route {
	if n := fs.nodes[id]; n != nil {
		return n.dir.routeLocked()
	}
	if d := fs.dirs[id]; d != nil {
		return d.routeLocked()
	}
	return fs.routeLocked(uint32(id >> routeNodeShift))
}

// routeLocked finds a route by its number; it is that of the root if there is none.
func (fs *FS) routeLocked(id uint32) *route {
	for _, r := range fs.routes {
		if r.queue.ID() == id {
			return r
		}
	}
	return fs.root.route
}

// admit says whether the queue would take a file in the directory, or of the name,
// with a node id.
func (fs *FS) admit(uid uint32, node uint64) error {
	fs.mu.Lock()
	r := fs.routeOfNodeLocked(node)
	fs.mu.Unlock()
	return r.queue.Admit(uid, 1, 0)
}

// makeRoute makes the directories of a route that is not the root's.
func (fs *FS) makeRoute(q *queue.Route) *route {
	r := &route{queue: q}
	id := routeDirBit | uint64(q.ID())<<routeDirShift
	r.dir = &dir{id: id, parent: fs.root, route: r, mode: dirMode, mtime: fs.started}
	fs.dirs[id] = r.dir
	fs.makeStanding(r.dir, id+1)
	return r
}

// makeStanding makes the standing directories of a route.
func (fs *FS) makeStanding(top *dir, first uint64) {
	top.dirs = make(map[string]*dir, standingDirs)
	for i := range standingDirs {
		d := &dir{
			id: first + uint64(i), standing: true, parent: top,
			name: "+" + strconv.Itoa(i), mode: dirMode, mtime: fs.started,
		}
		top.dirs[d.name] = d
		fs.dirs[d.id] = d
	}
}

// SetRoutes makes these the routes of the mount besides that of the root. A route
// that was there and is not in the list keeps its files that are open, and has no
// directory any more. The directory of a route hides that of a user with the same
// name, as a mount would.
//
// The kernel may go on for a minute to lead a name of a directory where it led.
func (fs *FS) SetRoutes(all []RouteOptions) error {
	for i := range all {
		if err := all[i].check(); err != nil {
			return err
		}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.makeRoutesLocked(all)
	given := map[*queue.Route]*RouteOptions{fs.root.route.queue: fs.root.route.tuned.Load()}
	for _, opts := range all {
		given[opts.Queue] = &opts
	}
	fs.root.tops = map[string]*dir{}
	jobs := false
	for _, r := range fs.routes {
		r.tuneLocked(given[r.queue])
		jobs = jobs || r.tuned.Load().Provenance
		if dir := r.tuned.Load().Dir; dir != "" {
			fs.root.tops[dir] = r.dir
		}
	}
	fs.jobs.Store(jobs)
	fs.tree.setRoutes(fs.routes)
	return nil
}

// makeRoutesLocked makes those that are new.
func (fs *FS) makeRoutesLocked(all []RouteOptions) {
	routes := slices.Clone(fs.routes)
	for _, opts := range all {
		if !slices.ContainsFunc(routes, func(r *route) bool { return r.queue == opts.Queue }) {
			routes = append(routes, fs.makeRoute(opts.Queue))
		}
	}
	slices.SortFunc(routes, func(a, b *route) int { return cmp.Compare(a.queue.ID(), b.queue.ID()) })
	fs.routes = routes
}

// tuneLocked gives a route its settings. One that has no directory any more has
// those that were known last.
func (r *route) tuneLocked(opts *RouteOptions) {
	last := r.tuned.Load()
	if last != nil && (opts == nil || opts.Format == nil) {
		next := *last
		next.Dir, opts = "", &next
	}
	opts.ensureDefaults()
	r.tuned.Store(opts)
	if opts.Dir != "" {
		r.dir.name = opts.Dir
	}
}

func (o *RouteOptions) check() error {
	switch {
	case o.Queue == nil || o.Dir != "" && o.Format == nil:
		return errors.New("file system needs the queue and the format of each route")
	case o.Queue.ID() > maxRouteID:
		return fmt.Errorf("route %q has the number %d: a store has room for %d routes in its life", o.Queue.Name(), o.Queue.ID(), maxRouteID)
	}
	return nil
}

// subLocked returns the directory of a name in another one, nil if there is none.
// Those of routes come first.
func (d *dir) subLocked(name string) *dir {
	if top := d.tops[name]; top != nil {
		return top
	}
	return d.dirs[name]
}

// isTop reports whether a directory is that of a route.
func (d *dir) isTop() bool { return d.route != nil && d.route.dir == d }

// noFormat is the format of a route that nobody knows any more: it decodes nothing,
// and loses nothing.
type noFormat struct{}

var _ ingest.Format = noFormat{}

// reasonNoRoute is why.
const reasonNoRoute = "no-route: the route is not in the configuration any more"

// Whole is part of ingest.Format.
func (noFormat) Whole() bool { return true }

// Decode is part of ingest.Format.
func (noFormat) Decode(data []byte, at ingest.Position) ingest.Result {
	if len(data) == 0 {
		return ingest.Result{}
	}
	tail := queue.Message{Line: uint32(at.Line) + 1, Body: data, Reason: reasonNoRoute}
	return ingest.Result{Tail: &tail}
}

// errOtherRoute says that a rename leads from one route to another, which have
// queues and formats of their own: mv copies then.
var errOtherRoute = fmt.Errorf("another route: %w", syscall.EXDEV)
