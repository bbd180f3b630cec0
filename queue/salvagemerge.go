package queue

import (
	"bytes"
	"container/heap"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// version is one entry of a database: a value or a deletion of a key.
type version struct {
	key []byte
	age
	kind  pebble.InternalKeyKind
	value []byte
}

func (v version) clone() version {
	v.key, v.value = bytes.Clone(v.key), bytes.Clone(v.value)
	return v
}

// tombstone deletes a range of keys that are older.
type tombstone struct {
	start, end []byte
	age
}

// age says when an entry was written.
type age struct {
	seq  uint64
	file uint64 // the number of its table or log; they grow with time
}

// newer reports whether an entry was written after another one with the same
// key.
//
// Compactions give the sequence number 0 to an entry below which there is
// nothing. It is the oldest then, but for what the same compaction has made
// obsolete: a file that is older than its output. Where it is not known which
// files are obsolete, that one is taken to be so, since a message that comes
// back is better than one that goes.
func (a age) newer(than age, trusted bool) bool {
	if (a.seq == 0) == (than.seq == 0) {
		return a.seq > than.seq || a.seq == than.seq && a.file > than.file
	}
	if trusted {
		return a.seq > than.seq
	}
	return a.file > than.file
}

// source gives entries in the order of their keys, newest version first.
type source interface {
	next() (version, bool, error)
	close() error
}

var (
	_ source = (*tableReader)(nil)
	_ source = (*scratchSource)(nil)
)

// merged is a source and its present entry.
type merged struct {
	source
	at version
}

// merge is a heap of sources.
type merge []*merged

var _ heap.Interface = (*merge)(nil)

func (m merge) Len() int      { return len(m) }
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(x any)   { *m = append(*m, x.(*merged)) }
func (m *merge) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

func (m merge) Less(i, j int) bool {
	a, b := m[i].at, m[j].at
	if c := bytes.Compare(a.key, b.key); c != 0 {
		return c < 0
	}
	return a.seq > b.seq
}

// push adds a source, which the merge closes at its end.
func (m *merge) push(s source) error {
	v, ok, err := s.next()
	if err != nil || !ok {
		return errors.Join(err, s.close())
	}
	heap.Push(m, &merged{s, v})
	return nil
}

// advance moves on the source that is first.
func (m *merge) advance() error {
	first := (*m)[0]
	v, ok, err := first.next()
	if err != nil {
		return err
	}
	if !ok {
		heap.Pop(m)
		return first.close()
	}
	first.at = v
	heap.Fix(m, 0)
	return nil
}

func (m *merge) close() {
	for _, s := range *m {
		s.close()
	}
}
