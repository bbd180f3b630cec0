package queue

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// renumber gives new numbers to delayed messages, and to dead letters whose
// number a message has, too. Where deletions were lost, a message may be there
// twice, with one number: as ready, delayed or dead. Then it becomes two with
// the same ID, and the counters stay right when one of them moves.
//
// It is for a database that nobody uses yet: a crash leaves it half done.
func renumber(e *engine) error {
	r := &renumbering{e: e, b: e.db.NewBatch()}
	err := guarded(func() (err error) {
		r.a, err = newAudit(e.db)
		return err
	})
	if err == nil {
		err = eachRowOf(e.db, []byte{kindDelayed}, []byte{kindDelayed + 1}, r.move)
	}
	if err == nil {
		err = eachRowOf(e.db, []byte{kindDead}, []byte{kindDead + 1}, r.moveTwin)
	}
	if err == nil {
		err = eachRowOf(e.db, []byte{kindPartial}, []byte{kindPartial + 1}, r.moveTwin)
	}
	if err != nil {
		return err
	}
	return e.await(e.submit(r.b, false, nil))
}

type renumbering struct {
	e *engine
	a *audit
	b *pebble.Batch
}

// move gives the next number of its route to a row.
func (r *renumbering) move(key, value []byte) error {
	if !wellFormed(key) {
		return nil
	}
	route := r.a.route(binary.BigEndian.Uint32(key[1:]))
	seq := max(route.found.next, route.stored.next)
	route.found.next = seq + 1
	now := bytes.Clone(key)
	binary.BigEndian.PutUint64(now[len(now)-8:], seq)
	if err := r.b.Set(now, value, nil); err != nil {
		return err
	}
	if err := r.b.Delete(key, nil); err != nil || r.b.Len() < salvageBatch {
		return err
	}
	w := r.e.submit(r.b, false, nil)
	r.b = r.e.db.NewBatch()
	return r.e.await(w)
}

// moveTwin moves a dead letter if there is a message with its number.
func (r *renumbering) moveTwin(key, value []byte) error {
	_, closer, err := r.e.db.Get(append([]byte{kindMessage}, key[1:]...))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(closer.Close(), r.move(key, value))
}
