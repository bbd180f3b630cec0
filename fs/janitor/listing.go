package janitor

import (
	"cmp"
	"math"
	"slices"
)

// listing is the oldest files of a directory, as far as they find room: 32
// bytes and the name each. What finds none is found by the next pass.
type listing struct {
	max   int
	names []byte
	items []item
	limit int64 // mtime from which on there is no room any more
	more  bool  // files were left out
}

// item is a file that is going to be taken, if it is still what it was.
type item struct {
	name   uint32 // where it stands in names
	length uint16 // some file systems have names of more than 255 bytes
	ino    uint64
	size   int64
	mtime  int64
}

// maxListed bounds the memory of a pass to some 50 MiB.
const maxListed = 1 << 19

func newListing(max int) *listing { return &listing{max: max, limit: math.MaxInt64} }

func (l *listing) add(name string, st stat) {
	if st.mtime >= l.limit {
		l.more = true
		return
	}
	l.items = append(l.items, item{uint32(len(l.names)), uint16(len(name)), st.ino, st.size, st.mtime})
	l.names = append(l.names, name...)
	if len(l.items) > l.max {
		l.dropNewer()
	}
}

// dropNewer makes room: the newer half goes.
func (l *listing) dropNewer() {
	l.sort()
	half := len(l.items) / 2
	l.limit, l.more = l.items[half].mtime, true
	old := listing{}
	for _, it := range l.items[:half] {
		name := l.nameOf(it)
		it.name = uint32(len(old.names))
		old.items = append(old.items, it)
		old.names = append(old.names, name...)
	}
	l.items, l.names = old.items, old.names
}

// sort brings the oldest to the front; of those of one time, as they were found.
func (l *listing) sort() {
	slices.SortStableFunc(l.items, func(a, b item) int { return cmp.Compare(a.mtime, b.mtime) })
}

func (l *listing) nameOf(it item) string {
	return string(l.names[it.name : it.name+uint32(it.length)])
}
