package queue

import "encoding/binary"

// What a user has stored is kept beside the counters of the routes and written
// in the same batches, so that shares hold across restarts too.

// The tags of a user's row, in the envelope of fields.go.
const (
	tagUserMessages = iota + 1
	tagUserBytes
)

func userKey(uid uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{kindUser}, uid)
}

// chargeLocked counts records that a user has stored more, or, as less, fewer.
func (q *Queue) chargeLocked(uid uint32, more, less tally) {
	t := q.users[uid]
	t.add(more)
	// A record that cannot be decoded does not tell whose it was.
	t.sub(tally{min(t.count, less.count), min(t.bytes, less.bytes)})
	if t == (tally{}) {
		delete(q.users, uid)
	} else {
		q.users[uid] = t
	}
	q.stored.add(more)
	q.stored.sub(less)
	q.charged[uid] = true
}

// encodeUser returns the row of a user; nil if there is nothing to keep.
func encodeUser(t tally) []byte {
	if t == (tally{}) {
		return nil
	}
	w := newFieldWriter(16)
	w.uint(tagUserMessages, t.count)
	w.uint(tagUserBytes, t.bytes)
	return w.finish()
}

func decodeUser(value []byte) (tally, error) {
	var t tally
	numbers := map[uint64]*uint64{tagUserMessages: &t.count, tagUserBytes: &t.bytes}
	err := eachField(value, func(tag uint64, content []byte) (err error) {
		if n := numbers[tag]; n != nil {
			*n, err = fieldUint(content)
		}
		return err
	})
	return t, err
}

// addUser takes up the row of a user.
func (im *image) addUser(key, value []byte) error {
	t, err := decodeUser(value)
	if err != nil {
		return err
	}
	im.users[binary.BigEndian.Uint32(key[1:])] = t
	im.stored.add(t)
	return nil
}
