package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/queue"
)

// What is in the tree besides the flat files.
const (
	routesName  = "routes"
	partialName = "partial"
	openName    = "open"
	controlName = "ctl"
)

// routeDirs are the directories of a route.
var routeDirs = map[string]statusKind{
	"pending": kindPendingDir,
	"delayed": kindDelayedDir,
	"dead":    kindDeadDir,
	"partial": kindTornDir,
}

func (t *statusTree) findInRoot(name string) (statusEntry, error) {
	switch name {
	case routesName:
		return t.directory(statusID{kind: kindRoutes}), nil
	case partialName:
		return t.directory(statusID{kind: kindPartialDir}), nil
	case openName:
		return t.directory(statusID{kind: kindOpenDir}), nil
	case controlName:
		return t.controlEntry(), nil
	}
	return t.findFlat(name)
}

func (t *statusTree) listRoot() []fuse.DirEntry {
	list := []fuse.DirEntry{
		dirent(routesName, statusID{kind: kindRoutes}),
		dirent(partialName, statusID{kind: kindPartialDir}),
		dirent(openName, statusID{kind: kindOpenDir}),
		dirent(controlName, statusID{kind: kindControl}),
	}
	for i, f := range t.files {
		list = append(list, dirent(f.Name, statusID{kind: kindFlat, route: uint16(i)}))
	}
	return list
}

func (t *statusTree) findRoute(name string) (statusEntry, error) {
	for i, r := range t.all() {
		if escapeName(r.queue.Name()) == name {
			return t.directory(statusID{kind: kindRoute, route: uint16(i)}), nil
		}
	}
	return statusEntry{}, syscall.ENOENT
}

func (t *statusTree) listRoutes() []fuse.DirEntry {
	var list []fuse.DirEntry
	for i, r := range t.all() {
		if !r.isGone() || r.holdsSome() {
			list = append(list, dirent(escapeName(r.queue.Name()), statusID{kind: kindRoute, route: uint16(i)}))
		}
	}
	return list
}

// holdsSome reports whether there are messages in a route.
func (r *route) holdsSome() bool {
	s, err := r.queue.Stats()
	return err != nil || s.Ready+s.Leased+s.Delayed+s.Dead+s.Partial+s.Staged > 0
}

// setRoutes changes the routes that are listed.
func (t *statusTree) setRoutes(all []*route) { t.routes.Store(&all) }

// all are the routes by their indexes.
func (t *statusTree) all() []*route { return *t.routes.Load() }

// route is the queue of the route with an index.
func (t *statusTree) route(index int) *queue.Route { return t.all()[index].queue }

func listRoute(id statusID) []fuse.DirEntry {
	var list []fuse.DirEntry
	for name, kind := range routeDirs {
		list = append(list, dirent(name, statusID{kind: kind, route: id.route}))
	}
	return list
}

func dirent(name string, id statusID) fuse.DirEntry {
	e := fuse.DirEntry{Name: name, Ino: id.ino(), Mode: syscall.S_IFREG}
	if id.isDir() {
		e.Mode = syscall.S_IFDIR
	}
	return e
}
