package fs

import (
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// maxPages is how many pages that were looked for, and were not opened, are kept.
const maxPages = 16

// pageOf finds the flat file of which a name is a page, and the key of that.
func (t *statusTree) pageOf(name string) (file int, key string, ok bool) {
	for i, f := range t.files {
		if key, ok := strings.CutPrefix(name, f.Name+"."); ok && f.Pages != nil {
			return i, key, true
		}
	}
	return 0, "", false
}

// mayLookFor refuses a page to those who may not read it: a page is made when it
// is looked for.
func (t *statusTree) mayLookFor(dir statusID, name string, c *fuse.Caller) error {
	if file, _, ok := t.pageOf(name); ok && dir.kind == kindRoot {
		return t.mayUse(statusID{kind: kindFlat, route: uint16(file)}, c)
	}
	return t.mayUse(dir, c)
}

// findPage takes a snapshot of a page. It goes with the handle that reads it: the
// kernel would remember each name for as long as it has memory.
func (t *statusTree) findPage(name string) (statusEntry, error) {
	file, key, ok := t.pageOf(name)
	if !ok {
		return statusEntry{}, syscall.ENOENT
	}
	content, err := t.files[file].Pages(key)
	if err != nil {
		return statusEntry{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := statusID{kind: kindPage, route: uint16(file), number: t.fs.memory.NextSnapshot() % maxNumber}
	s := t.snapshot(id, content, time.Now())
	t.snapshots[id.node()] = s
	t.pages = append(t.pages, id.node())
	if len(t.pages) > maxPages {
		delete(t.snapshots, t.pages[0])
		t.pages = t.pages[1:]
	}
	return s.entry(id), nil
}
