package queue

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// load reads routes, counters and stages. What it reads is in proportion to the
// number of routes and stages, never to the number of messages.
func (q *Queue) load() error {
	if err := q.eachRow([]byte{kindRoute}, []byte{kindRoute + 1}, q.loadRoute); err != nil {
		return err
	}
	return q.eachRow([]byte{kindStage}, []byte{kindStage + 1}, q.loadStage)
}

// errStop ends eachRow early, without an error.
var errStop = errors.New("stop")

// eachRow calls f for each row from key lo up to hi.
func (q *Queue) eachRow(lo, hi []byte, f func(key, value []byte) error) error {
	it, err := q.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		err = f(it.Key(), it.Value())
	}
	if closed := it.Close(); err == nil || errors.Is(err, errStop) {
		err = closed
	}
	return err
}

func (q *Queue) loadRoute(key, value []byte) error {
	r := newRoute(q, binary.BigEndian.Uint32(key[1:]))
	err := eachField(value, func(tag uint64, content []byte) error {
		if tag == tagRouteName {
			r.name = string(content)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("route %d: %w", r.id, err)
	}
	if err := r.load(); err != nil {
		return fmt.Errorf("route %q: %w", r.name, err)
	}
	q.routes[r.name] = r
	return nil
}

func (r *Route) load() error {
	value, closer, err := r.q.db.Get(routeKey(kindCounters, r.id))
	if err == nil {
		r.count, err = decodeCounters(value)
		closer.Close()
	}
	if err != nil {
		return err
	}
	r.cursor = r.count.head
	lo, hi := routeKey(kindDelayed, r.id), routeKey(kindDelayed, r.id+1)
	return r.q.eachRow(lo, hi, func(key, _ []byte) error {
		r.nextDue = dueOf(key)
		return errStop
	})
}

// loadStage takes up the head or a chunk of a stage. The head sorts first.
func (q *Queue) loadStage(key, value []byte) error {
	var file FileID
	copy(file[:], key[1:])
	if len(key) == len(stageKey(file)) {
		s, err := q.decodeStage(file, value)
		if err != nil {
			return fmt.Errorf("stage %s: %w", file, err)
		}
		q.stages[file] = s
		return nil
	}
	s := q.stages[file]
	if s == nil {
		return fmt.Errorf("%w: chunk of stage %s without its head", ErrCorrupt, file)
	}
	return s.loadChunk(binary.BigEndian.Uint32(key[len(key)-4:]), value)
}

// decodeStage reads the head of a stage.
func (q *Queue) decodeStage(file FileID, value []byte) (*Stage, error) {
	s := &Stage{q: q, file: file}
	var route, uid, held uint64
	numbers := map[uint64]*uint64{
		tagStageRoute: &route, tagStageTicket: &s.ticket, tagStageUID: &uid,
		tagStageHeld: &held, tagStageCommitted: &s.info.Committed,
		tagStageMessages: &s.content.messages.count, tagStageMessageBytes: &s.content.messages.bytes,
		tagStageDead: &s.content.dead.count, tagStageDeadBytes: &s.content.dead.bytes,
	}
	err := eachField(value, func(tag uint64, content []byte) (err error) {
		if tag == tagStageFile {
			s.info.File = string(content)
		} else if n := numbers[tag]; n != nil {
			*n, err = fieldUint(content)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.info.UID, s.info.Held = uint32(uid), held != 0
	s.entries = int(s.content.all().count)
	for _, r := range q.routes {
		if uint64(r.id) == route {
			s.route = r
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: stage of unknown route %d", ErrCorrupt, route)
}

// loadChunk takes up the numbers of one chunk. Chunks sort by their index.
func (s *Stage) loadChunk(index uint32, value []byte) error {
	sp, err := decodeChunk(value)
	if err != nil {
		return err
	}
	if int(index) != len(s.extents) {
		return fmt.Errorf("%w: stage %s lacks chunk %d", ErrCorrupt, s.file, len(s.extents))
	}
	// No time is set: nobody waits for a stage of a former process.
	e := &extent{span: sp, stage: s}
	s.extents = append(s.extents, e)
	s.route.addExtentLocked(e)
	return nil
}
