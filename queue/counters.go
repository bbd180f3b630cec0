package queue

// tally counts messages and the bytes of their stored records.
type tally struct{ count, bytes uint64 }

func (t *tally) add(o tally) { t.count += o.count; t.bytes += o.bytes }
func (t *tally) sub(o tally) { t.count -= o.count; t.bytes -= o.bytes }

// without is what of t is more than o.
func (t tally) without(o tally) tally {
	return tally{t.count - min(t.count, o.count), t.bytes - min(t.bytes, o.bytes)}
}

// counters is what the store keeps of a route beside its messages. It is
// written in each batch that changes it, so that it equals a scan at any time,
// also after a crash.
type counters struct {
	next uint64 // the sequence number of the next record

	// head is where a scan for ready messages begins: rows with smaller
	// numbers belong to stages. It only saves time: settled rows are deleted.
	head uint64

	// swept is where the next sweep begins: before it nothing is left but rows
	// of stages.
	swept uint64

	pending tally // ready and leased
	staged  tally // of stages, of all kinds
	delayed tally
	dead    tally
	partial tally

	drops drops
}

// drops counts messages that were removed by the options of their route.
type drops struct{ oldest, newest, coalesced uint64 }

// enter counts what has become visible: committed or appended.
func (c *counters) enter(added content) {
	c.pending.add(added.messages)
	c.dead.add(added.dead)
	c.partial.add(added.partial)
}

// of returns the tally of the rows of a kind that belong to no stage.
func (c *counters) of(kind byte) *tally {
	switch kind {
	case kindDead:
		return &c.dead
	case kindPartial:
		return &c.partial
	case kindDelayed:
		return &c.delayed
	}
	return &c.pending
}

// all counts the rows of all messages.
func (c counters) all() tally {
	t := c.pending
	for _, o := range []tally{c.staged, c.delayed, c.dead, c.partial} {
		t.add(o)
	}
	return t
}

// The tags of counters, in the envelope of fields.go.
const (
	tagNext = iota + 1
	tagHead
	tagPending
	tagPendingBytes
	tagStaged
	tagStagedBytes
	tagDelayed
	tagDelayedBytes
	tagDead
	tagDeadBytes
	tagSwept
	tagPartialFiles
	tagPartialBytes
	tagDroppedOldest
	tagDroppedNewest
	tagCoalesced
)

// byTag lists the numbers in the order of their tags.
func (c *counters) byTag() [16]*uint64 {
	return [16]*uint64{
		&c.next, &c.head,
		&c.pending.count, &c.pending.bytes, &c.staged.count, &c.staged.bytes,
		&c.delayed.count, &c.delayed.bytes, &c.dead.count, &c.dead.bytes,
		&c.swept,
		&c.partial.count, &c.partial.bytes,
		&c.drops.oldest, &c.drops.newest, &c.drops.coalesced,
	}
}

func (c *counters) encode() []byte {
	w := newFieldWriter(64)
	for i, v := range c.byTag() {
		w.uint(uint64(i+tagNext), *v)
	}
	return w.finish()
}

func decodeCounters(value []byte) (counters, error) {
	var c counters
	fields := c.byTag()
	err := eachField(value, func(tag uint64, content []byte) (err error) {
		if tag <= uint64(len(fields)) {
			*fields[tag-tagNext], err = fieldUint(content)
		}
		return err
	})
	return c, err
}
