package fs

import (
	"bytes"
	"encoding/binary"
	"time"

	"spoolfs/fs/shm"
)

// What somebody has open in the status tree stays that moment of it also when
// another process takes over: a reader who has had the first half gets the second
// half of the same. Its content is in the shared memory, in a record of its own for
// each handle.

// maxKept is the size in bytes of the largest content that is kept. What is larger
// is a message, which does not change, or a partial file.
const maxKept = 4 << 20

// keep puts what a handle reads into the shared memory, from where it is read from
// then on.
func (t *statusTree) keep(fh uint64, id statusID, s *snapshot) *snapshot {
	if len(s.content) > maxKept || id.kind == kindControl {
		return s
	}
	table := t.fs.table
	d, err := table.NewData(len(s.content))
	if err != nil {
		return s // it has no room: the next process takes the moment anew
	}
	kept := &snapshot{content: table.Bytes(d)[:len(s.content)], attr: s.attr, data: d}
	copy(kept.content, s.content)
	var c shm.Change
	c.Set(shm.Key{Kind: kindSnapshot, ID: fh}, func(b []byte) []byte { return kept.encode(b, id) })
	if err := table.Commit(&c); err != nil {
		table.FreeData(d)
		return s
	}
	return kept
}

// unkeep takes it back.
func (t *statusTree) unkeep(fh uint64, s *snapshot) {
	if s == nil || s.data.Size == 0 {
		return
	}
	var c shm.Change
	c.Delete(shm.Key{Kind: kindSnapshot, ID: fh})
	c.Free(s.data)
	t.fs.commitChange(&c)
}

func (s *snapshot) encode(b []byte, id statusID) []byte {
	b = append(b, recordVersion)
	for _, n := range [...]uint64{
		id.node(), s.attr.Mtime, uint64(s.attr.Mtimensec), uint64(s.attr.Uid), uint64(len(s.content)), s.data.At, uint64(s.data.Size),
	} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// keptSnapshot is what a record says.
type keptSnapshot struct {
	node uint64
	at   time.Time
	uid  uint32
	size int64
	data shm.Data
}

func decodeSnapshot(b []byte) (keptSnapshot, error) {
	r := newRecord(b)
	k := keptSnapshot{node: r.number()}
	k.at = time.Unix(r.size(), r.size())
	k.uid, k.size = uint32(r.number()), r.size()
	k.data = shm.Data{At: r.number(), Size: int(r.size())}
	if k.size > int64(k.data.Size) {
		r.fail()
	}
	return k, r.err
}

// readSnapshots makes the handles of the status tree. One that makes no sense is
// given up: its reader gets what the tree says now.
func (t *takeover) readSnapshots() error {
	table, tree := t.fs.table, t.fs.tree
	found := map[uint64]keptSnapshot{}
	var drop shm.Change
	lose := func(fh uint64, err error) {
		t.fs.opts.Logger.Error("what is read of the status is not known any more", "handle", fh, "error", err)
		drop.Delete(shm.Key{Kind: kindSnapshot, ID: fh})
	}
	err := table.Each(kindSnapshot, func(fh uint64, content []byte) error {
		k, err := decodeSnapshot(content)
		if err != nil {
			lose(fh, err)
			return nil
		}
		found[fh] = k
		return nil
	})
	if err != nil {
		return err
	}
	for fh, k := range found {
		id := parseStatusID(k.node)
		if id.isSnapshot() && int(id.route) >= len(tree.files) {
			lose(fh, shm.ErrLayout)
			continue
		}
		if err := table.Claim(k.data); err != nil {
			lose(fh, err)
			continue
		}
		tree.restore(fh, id, k)
	}
	return table.Commit(&drop)
}

// restore is the inverse of keep.
func (t *statusTree) restore(fh uint64, id statusID, k keptSnapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.snapshot(id, t.fs.table.Bytes(k.data)[:k.size], k.at)
	s.attr.Uid, s.data = k.uid, k.data
	t.opened[fh] = s
	if id.kind == kindFlat {
		node := *s
		node.content, node.data = bytes.Clone(s.content), shm.Data{}
		t.snapshots[id.node()] = &node
	}
}
