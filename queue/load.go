package queue

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// image is what a store says about itself.
type image struct {
	q      *Queue
	routes map[string]*Route
	stages map[FileID]*Stage
	users  map[uint32]tally
	stored tally
}

// load opens an engine and takes up what the store holds. What it reads is in
// proportion to the number of routes and stages, never to that of messages.
func (q *Queue) load() error {
	e, err := openEngine(q.database(), &q.opts, q.faulted)
	if err != nil {
		return err
	}
	q.engine = e
	im := &image{q: q, routes: map[string]*Route{}, stages: map[FileID]*Stage{}, users: map[uint32]tally{}}
	for _, rows := range []struct {
		kind byte
		add  func(key, value []byte) error
	}{{kindRoute, im.addRoute}, {kindStage, im.addStage}, {kindUser, im.addUser}} {
		if err := q.eachRow([]byte{rows.kind}, []byte{rows.kind + 1}, rows.add); err != nil {
			return errors.Join(err, e.close())
		}
	}
	if err := q.keepRoutes(im); err != nil {
		return errors.Join(err, e.close())
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.adoptLocked(im)
	return nil
}

// keepRoutes writes the routes again whose making a fault has undone: callers
// may hold them, and what they append must be found by the name of the route.
func (q *Queue) keepRoutes(im *image) error {
	b := q.engine.db.NewBatch()
	for name, r := range q.routes { // only submitRoute adds to it
		if im.routes[name] != nil {
			continue
		}
		now := newRoute(q, r.id)
		now.name = name
		im.routes[name] = now
		if err := errors.Join(now.write(b), b.Set(routeKey(kindCounters, r.id), now.count.encode(), nil)); err != nil {
			return err
		}
	}
	if b.Empty() {
		return nil
	}
	return q.engine.await(q.engine.submit(b, true))
}

// errStop ends eachRow early, without an error.
var errStop = errors.New("stop")

// eachRow calls f for each row from key lo up to hi.
func (q *Queue) eachRow(lo, hi []byte, f func(key, value []byte) error) (err error) {
	defer recoverFatal(&err)
	it, err := q.engine.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
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

func (im *image) addRoute(key, value []byte) error {
	r := newRoute(im.q, binary.BigEndian.Uint32(key[1:]))
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
	im.routes[r.name] = r
	return nil
}

func (r *Route) load() error {
	value, closer, err := r.q.engine.db.Get(routeKey(kindCounters, r.id))
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

// addStage takes up the head or a chunk of a stage. The head sorts first.
func (im *image) addStage(key, value []byte) error {
	var file FileID
	copy(file[:], key[1:])
	if len(key) == len(stageKey(file)) {
		s, err := im.decodeStage(file, value)
		if err != nil {
			return fmt.Errorf("stage %s: %w", file, err)
		}
		im.stages[file] = s
		return nil
	}
	s := im.stages[file]
	if s == nil {
		return fmt.Errorf("%w: chunk of stage %s without its head", ErrCorrupt, file)
	}
	return s.loadChunk(binary.BigEndian.Uint32(key[len(key)-4:]), value)
}

// decodeStage reads the head of a stage.
func (im *image) decodeStage(file FileID, value []byte) (*Stage, error) {
	s := &Stage{q: im.q, file: file}
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
	for _, r := range im.routes {
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
