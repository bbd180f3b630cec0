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
	damage DamageReport
}

// maxSetAsides is how often load sets a database aside before it gives up for
// now: what was salvaged should be good, unless the memory is not.
const maxSetAsides = 3

// load opens an engine and takes up what the store holds. A database that is
// damaged is set aside first, and salvaged.
func (q *Queue) load() error {
	if err := q.resumeSetAside(); err != nil {
		return err
	}
	var err error
	if e := q.engine; e != nil && e != q.asideOf && e.hasFailed() && isCorruption(e.err) {
		err = e.err
	} else {
		err = q.takeUp()
	}
	for range maxSetAsides {
		if !isDamage(err) {
			return err
		}
		if err := q.setAside(err); err != nil {
			return err
		}
		err = q.takeUp()
	}
	return err
}

// takeUp opens an engine and reads what is in proportion to the number of routes
// and stages, never to that of messages, unless there is something to repair.
func (q *Queue) takeUp() error {
	if err := inspect(q.opts.FS, q.database()); err != nil {
		return err
	}
	e, err := openEngine(q.database(), &q.opts, q.faulted)
	if err != nil {
		return err
	}
	q.engine = e
	im, err := q.readImage()
	if errors.Is(err, ErrCorrupt) {
		q.opts.Logger.Error("the bookkeeping of the store is damaged and made anew", "error", err)
		if _, err = repair(e, DamageReport{}); err == nil {
			im, err = q.readImage()
		}
	}
	if err == nil {
		err = q.keepRoutes(im)
	}
	if e.hasFailed() {
		err = e.err
	}
	if err != nil {
		return errors.Join(err, e.close())
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.damage = im.damage
	q.adoptLocked(im)
	return nil
}

// keepRoutes writes the routes again whose making a fault has undone: callers
// may hold them, and what they append must be found by the name of the route.
func (q *Queue) keepRoutes(im *image) error {
	q.settleNames(im)
	b := q.engine.db.NewBatch()
	for name, r := range q.routes { // only submitRoute and RenameRoute change it
		if im.routes[name] != nil {
			continue
		}
		now := newRoute(q, r.id)
		now.setName(name)
		im.routes[name] = now
		if err := errors.Join(now.write(b), b.Set(routeKey(kindCounters, r.id), now.count.encode(), nil)); err != nil {
			return err
		}
	}
	if b.Empty() {
		return nil
	}
	return q.engine.await(q.engine.submit(b, true, nil))
}

// readImage reads what the store says about itself. The error is ErrCorrupt if
// that does not fit together.
func (q *Queue) readImage() (*image, error) {
	im := &image{q: q, routes: map[string]*Route{}, stages: map[FileID]*Stage{}, users: map[uint32]tally{}}
	err := guarded(func() (err error) {
		im.damage, err = readDamage(q.engine.db)
		return err
	})
	if err == nil {
		err = q.eachRow([]byte{kindRoute}, []byte{kindRoute + 1}, im.addRoute)
	}
	if err == nil {
		err = q.eachRow([]byte{kindStage}, []byte{kindStage + 1}, im.addStage)
	}
	if err == nil {
		err = q.eachRow([]byte{kindUser}, []byte{kindUser + 1}, im.addUser)
	}
	if err == nil {
		err = im.check()
	}
	return im, err
}

// errStop ends eachRow early, without an error.
var errStop = errors.New("stop")

// eachRow calls f for each row from key lo up to hi. Rows with malformed keys are
// left to Check. If what it reads is damaged, the queue parks until that is set
// aside.
func (q *Queue) eachRow(lo, hi []byte, f func(key, value []byte) error) error {
	return q.walk(eachRowOf, lo, hi, f)
}

// eachRowDown is eachRow from the last row to the first.
func (q *Queue) eachRowDown(lo, hi []byte, f func(key, value []byte) error) error {
	return q.walk(eachRowDownOf, lo, hi, f)
}

// walker calls f for the rows of a range, in one direction.
type walker func(db *pebble.DB, lo, hi []byte, f func(key, value []byte) error) error

func (q *Queue) walk(each walker, lo, hi []byte, f func(key, value []byte) error) error {
	var failed error // of f, which is no damage
	err := each(q.engine.db, lo, hi, func(key, value []byte) error {
		if wellFormed(key) {
			failed = f(key, value)
		}
		return failed
	})
	if failed != nil && failed != errStop {
		return err
	}
	return q.engine.condemn(err)
}

func eachRowOf(db *pebble.DB, lo, hi []byte, f func(key, value []byte) error) error {
	return iterate(db, lo, hi, (*pebble.Iterator).First, (*pebble.Iterator).Next, f)
}

func eachRowDownOf(db *pebble.DB, lo, hi []byte, f func(key, value []byte) error) error {
	return iterate(db, lo, hi, (*pebble.Iterator).Last, (*pebble.Iterator).Prev, f)
}

func iterate(db *pebble.DB, lo, hi []byte, begin, next func(*pebble.Iterator) bool, f func(key, value []byte) error) error {
	return guarded(func() error {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
		if err != nil {
			return err
		}
		for ok := begin(it); ok && err == nil; ok = next(it) {
			err = f(it.Key(), it.Value())
		}
		if closed := it.Close(); err == nil || errors.Is(err, errStop) {
			err = closed
		}
		return err
	})
}

func (im *image) addRoute(key, value []byte) error {
	r := newRoute(im.q, binary.BigEndian.Uint32(key[1:]))
	name, err := decodeRouteName(value)
	if err != nil {
		return fmt.Errorf("route %d: %w", r.id, err)
	}
	r.setName(name)
	if err := r.load(); err != nil {
		return fmt.Errorf("route %q: %w", r.Name(), err)
	}
	if im.routes[r.Name()] != nil {
		return fmt.Errorf("%w: two routes have the name %q", ErrCorrupt, r.Name())
	}
	im.routes[r.Name()] = r
	return nil
}

func (r *Route) load() error {
	found := false
	key := routeKey(kindCounters, r.id)
	err := r.q.eachRow(key, append(key, 0), func(_, value []byte) (err error) {
		found = true
		r.count, err = decodeCounters(value)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: there are no counters", ErrCorrupt)
	}
	if err != nil {
		return err
	}
	r.cursor = r.count.head
	err = r.q.eachRow(routeKey(kindLatest, r.id), routeKey(kindLatest, r.id+1), func([]byte, []byte) error {
		r.hinted = true
		return errStop
	})
	if err != nil {
		return err
	}
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
		s, route, err := decodeStage(file, value)
		if err != nil {
			return fmt.Errorf("stage %s: %w", file, err)
		}
		for _, r := range im.routes {
			if r.id == route {
				s.q, s.route = im.q, r
				im.stages[file] = s
				return nil
			}
		}
		return fmt.Errorf("%w: stage of unknown route %d", ErrCorrupt, route)
	}
	s := im.stages[file]
	if s == nil {
		return fmt.Errorf("%w: chunk of stage %s without its head", ErrCorrupt, file)
	}
	return s.loadChunk(binary.BigEndian.Uint32(key[len(key)-4:]), value)
}

// decodeStage reads the head of a stage, and the number of its route.
func decodeStage(file FileID, value []byte) (*Stage, uint32, error) {
	s := &Stage{file: file}
	var route, uid, held uint64
	numbers := map[uint64]*uint64{
		tagStageRoute: &route, tagStageTicket: &s.ticket, tagStageUID: &uid,
		tagStageHeld: &held, tagStageCommitted: &s.info.Committed,
		tagStageMessages: &s.content.messages.count, tagStageMessageBytes: &s.content.messages.bytes,
		tagStageDead: &s.content.dead.count, tagStageDeadBytes: &s.content.dead.bytes,
		tagStagePartial: &s.content.partial.count, tagStagePartialBytes: &s.content.partial.bytes,
	}
	err := eachField(value, func(tag uint64, content []byte) (err error) {
		if tag == tagStageFile {
			s.info.File = string(content)
		} else if n := numbers[tag]; n != nil {
			*n, err = fieldUint(content)
		}
		return err
	})
	s.info.UID, s.info.Held = uint32(uid), held != 0
	s.entries = int(s.content.all().count)
	return s, uint32(route), err
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

// check finds what does not fit together, as far as that can be told without
// looking at the messages.
func (im *image) check() error {
	for _, s := range im.stages {
		size := uint64(0)
		for _, e := range s.extents {
			size += e.hi - e.lo
		}
		if size != uint64(s.entries) {
			return fmt.Errorf("%w: stage %s has %d of %d entries", ErrCorrupt, s.file, size, s.entries)
		}
	}
	known := map[uint32]bool{}
	for _, r := range im.routes {
		known[r.id] = true
		hi := uint64(0)
		for _, e := range r.staged {
			if e.lo < hi || e.hi < e.lo || e.hi > r.count.next {
				return fmt.Errorf("%w: route %q has overlapping stages", ErrCorrupt, r.Name())
			}
			hi = e.hi
		}
	}
	for _, kind := range []byte{kindCounters, kindDead, kindMessage, kindDelayed, kindPartial} {
		if err := im.checkRoutes(kind, sortedKeys(known)); err != nil {
			return err
		}
	}
	return nil
}

// checkRoutes looks for rows of routes that nobody knows, between those that are
// known: their rows are not touched.
func (im *image) checkRoutes(kind byte, known []uint32) error {
	lo := routeKey(kind, 0)
	for _, id := range append(known, 0) {
		hi := []byte{kind + 1}
		if id != 0 {
			hi = routeKey(kind, id)
		}
		err := im.q.eachRow(lo, hi, func(key, _ []byte) error {
			return fmt.Errorf("%w: row of unknown route %d", ErrCorrupt, binary.BigEndian.Uint32(key[1:]))
		})
		if err != nil {
			return err
		}
		lo = routeKey(kind, id+1)
	}
	return nil
}
