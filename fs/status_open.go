package fs

import (
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// .status/open shows what is open or held now: for each user the names of all
// his files, with their paths, and by their attributes size and last change.
// Nobody reads them, as they are private until they are published.

// findUser finds the directory of a user who has something open.
func (t *statusTree) findUser(name string) (statusEntry, error) {
	uid, err := strconv.ParseUint(name, 10, 32)
	if err != nil || name != strconv.FormatUint(uid, 10) || !slices.Contains(t.fs.usage.holders(), uint32(uid)) {
		return statusEntry{}, syscall.ENOENT
	}
	return t.directory(statusID{kind: kindUserDir, number: uid}), nil
}

func (t *statusTree) listUsers() []fuse.DirEntry {
	var list []fuse.DirEntry
	for _, uid := range t.fs.usage.holders() {
		list = append(list, dirent(strconv.FormatUint(uint64(uid), 10), statusID{kind: kindUserDir, number: uint64(uid)}))
	}
	return list
}

// findOpen finds what a user has open under a path.
func (t *statusTree) findOpen(dir statusID, name string) (statusEntry, error) {
	uid := uint32(dir.number)
	id := t.openAt(uid, nameUnescapes.Replace(name))
	if id == 0 && len(name) == maxName {
		// The name of a long path ends in a hash.
		t.eachOpen(uid, func(n *node, path string) {
			if escapeName(path) == name {
				id = n.id
			}
		})
	}
	if id == 0 {
		return statusEntry{}, syscall.ENOENT
	}
	return t.openEntry(statusID{kind: kindOpenFile, number: id})
}

// nameUnescapes is the inverse of nameEscapes.
var nameUnescapes = strings.NewReplacer("%2F", "/", "%25", "%", "%00", "\x00")

// openAt returns the node of a path as a user sees it; 0 if there is none.
func (t *statusTree) openAt(uid uint32, path string) uint64 {
	fs := t.fs
	fs.mu.Lock()
	defer fs.mu.Unlock()
	names := strings.Split(path, "/")
	d := fs.root
	for _, name := range names[:len(names)-1] {
		if d = d.subLocked(name); d == nil {
			return 0
		}
	}
	n := d.nodes[nameKey{uid, names[len(names)-1]}]
	if n == nil || !n.isHeldOrOpenLocked() {
		return 0
	}
	return n.id
}

// isHeldOrOpenLocked reports whether a writer has the node open, or it is held.
// A file that has been flushed counts, until its RELEASE.
func (n *node) isHeldOrOpenLocked() bool { return n.held != nil || n.hasWriterLocked() }

// openEntry describes a file that is open or held, as it is at the moment.
func (t *statusTree) openEntry(id statusID) (statusEntry, error) {
	t.fs.mu.Lock()
	defer t.fs.mu.Unlock()
	n := t.fs.nodes[id.number]
	if n == nil || !n.named {
		return statusEntry{}, syscall.ENOENT
	}
	e := statusEntry{id: id}
	n.attrLocked(nil, &e.attr)
	return e, nil
}

func (t *statusTree) listOpen(dir statusID) []fuse.DirEntry {
	var list []fuse.DirEntry
	t.eachOpen(uint32(dir.number), func(n *node, path string) {
		list = append(list, fuse.DirEntry{Name: escapeName(path), Ino: n.id, Mode: syscall.S_IFREG})
	})
	return list
}

// eachOpen calls f for the files that a user has open or held, under FS.mu, which
// it gives to others in between.
func (t *statusTree) eachOpen(uid uint32, f func(n *node, path string)) {
	fs := t.fs
	fs.mu.Lock()
	defer fs.mu.Unlock()
	looked := 0
	for _, n := range fs.nodes {
		if looked++; looked%256 == 0 {
			fs.mu.Unlock()
			fs.mu.Lock()
		}
		if n.key.uid == uid && n.named && n.isHeldOrOpenLocked() {
			f(n, n.dir.mountPathLocked(n.key.name))
		}
	}
}
