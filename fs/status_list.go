package fs

import (
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/queue"
)

// pageEntries and pageBytes end a page of a listing: it is what the queue reads
// at a time.
const (
	pageEntries = 256
	pageBytes   = 1 << 20
)

// listMessages lists a directory page by page, each read from the store when the
// one before has been taken. It goes on behind the place of the last message,
// whatever has become of that.
func (t *statusTree) listMessages(dir statusID) pager {
	i, end := t.routesOf(dir)
	var after *queue.Place // nil at the beginning
	var mu sync.Mutex      // a call may outlive its request
	next := func() ([]fuse.DirEntry, error) {
		mu.Lock()
		defer mu.Unlock()
		for ; i < end; i++ {
			page, last, err := t.messagePage(dir, i, after)
			if after = last; err != nil || len(page) > 0 {
				return page, err
			}
			after = nil
		}
		return nil, nil
	}
	return func(unique uint64) ([]fuse.DirEntry, error) { return patient(t.fs, unique, next) }
}

// routesOf returns the indexes of the routes whose messages a directory holds.
func (t *statusTree) routesOf(dir statusID) (first, end int) {
	if dir.kind == kindPartialDir {
		return 0, len(t.all())
	}
	return int(dir.route), int(dir.route) + 1
}

func (t *statusTree) messagePage(dir statusID, route int, after *queue.Place) ([]fuse.DirEntry, *queue.Place, error) {
	var page []fuse.DirEntry
	var from queue.Place
	if after != nil {
		from = *after
	}
	size := 0
	for e, err := range t.route(route).Entries(dir.state(), from) {
		if err != nil {
			return page, after, err
		}
		id, name := t.note(dir, route, e)
		page = append(page, dirent(name, id))
		after = &e.Place
		if size += len(e.Body); len(page) == pageEntries || size >= pageBytes {
			break
		}
	}
	return page, after, nil
}

// note remembers where a message is.
func (t *statusTree) note(dir statusID, route int, e queue.Entry) (statusID, string) {
	id, name := messageID(dir, route, e), messageName(dir, e)
	t.places.put(nameIn(dir, name), id.node())
	if dir.kind == kindDelayedDir {
		t.dues.put(id.ino(), e.Place.Due)
	}
	return id, name
}
