package queue

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// audit is what a scan of all rows of a database finds.
type audit struct {
	db       *pebble.DB
	routes   map[uint32]*auditRoute
	stages   map[FileID]*auditStage
	users    map[uint32]tally // as found
	charged  map[uint32]tally // as stored
	strays   [][]byte         // keys of rows that cannot be understood
	problems problems
	damage   DamageReport
}

// auditRoute is a route, as it is stored and as it is found.
type auditRoute struct {
	id     uint32
	name   string
	named  bool
	stored counters
	valid  bool // the stored counters could be read

	found   counters // next is behind the largest number
	lowest  uint64   // of what is ready
	corrupt uint64   // records that cannot be decoded
	hints   uint64
	extents []auditExtent
}

type auditExtent struct {
	span
	stage *auditStage
}

// auditStage is a stage, as it is stored and as it is found.
type auditStage struct {
	file   FileID
	stage  *Stage // nil if the head cannot be read
	route  uint32
	chunks []span
	keys   [][]byte
	found  content
	bad    bool
}

// newAudit scans a database. An error is one of reading it.
func newAudit(db *pebble.DB) (*audit, error) {
	a := &audit{db: db, routes: map[uint32]*auditRoute{}, stages: map[FileID]*auditStage{},
		users: map[uint32]tally{}, charged: map[uint32]tally{},
	}
	var err error
	if a.damage, err = readDamage(db); err != nil {
		return a, err
	}
	scans := []struct {
		kind byte
		row  func(key, value []byte)
	}{
		{kindRoute, a.addName}, {kindCounters, a.addCounters}, {kindStage, a.addStage}, {kindUser, a.addUser},
		{kindDead, a.addMessage}, {kindMessage, a.addMessage}, {kindPartial, a.addMessage}, {kindDelayed, a.addDelayed},
		{kindLatest, a.addHint},
	}
	for _, s := range scans {
		if s.kind == kindDead {
			a.joinStages()
		}
		if err := a.scan(s.kind, s.row); err != nil {
			return a, fmt.Errorf("rows of kind %q: %w", s.kind, err)
		}
	}
	a.judgeStages()
	a.judgeRoutes()
	if !maps.Equal(a.users, a.charged) {
		a.problems.add(Problem{Kind: "users", Detail: fmt.Sprintf("stored %+v, found %+v", a.charged, a.users)})
	}
	return a, nil
}

func (a *audit) addUser(key, value []byte) {
	uid := binary.BigEndian.Uint32(key[1:])
	t, err := decodeUser(value)
	if err != nil {
		a.stray(key, "users", "user %d: %v", uid, err)
		return
	}
	a.charged[uid] = t
}

// addHint verifies a hint. What it tells of may be gone.
func (a *audit) addHint(key, value []byte) {
	r := a.routes[binary.BigEndian.Uint32(key[1:])]
	if r == nil {
		a.stray(key, "hint", "of unknown route %d", binary.BigEndian.Uint32(key[1:]))
		return
	}
	if _, err := decodeHint(value); err != nil {
		a.stray(key, "hint", "of route %d: %v", r.id, err)
		return
	}
	r.hints++
}

func (a *audit) scan(kind byte, row func(key, value []byte)) error {
	return eachRowOf(a.db, []byte{kind}, []byte{kind + 1}, func(key, value []byte) error {
		if wellFormed(key) {
			row(key, value)
			return nil
		}
		a.stray(key, "key-malformed", "key %x", key)
		return nil
	})
}

// stray notes a row that is to be set aside.
func (a *audit) stray(key []byte, kind, format string, args ...any) {
	a.problems.add(Problem{Kind: kind, Detail: fmt.Sprintf(format, args...)})
	if len(a.strays) < maxStrays {
		a.strays = append(a.strays, bytes.Clone(key))
	}
}

// maxStrays bounds the memory for strays. Those beyond are taken by the next
// repair.
const maxStrays = 100_000

func (a *audit) route(id uint32) *auditRoute {
	r := a.routes[id]
	if r == nil {
		r = &auditRoute{id: id}
		a.routes[id] = r
	}
	return r
}

func (a *audit) addName(key, value []byte) {
	r := a.route(binary.BigEndian.Uint32(key[1:]))
	name, err := decodeRouteName(value)
	if err != nil {
		a.stray(key, "route-name", "route %d: %v", r.id, err)
		return
	}
	r.name, r.named = name, true
}

func (a *audit) addCounters(key, value []byte) {
	r := a.route(binary.BigEndian.Uint32(key[1:]))
	c, err := decodeCounters(value)
	if err != nil {
		a.stray(key, "counters", "route %d: %v", r.id, err)
		return
	}
	r.stored, r.valid = c, true
}

func (a *audit) addStage(key, value []byte) {
	var file FileID
	copy(file[:], key[1:])
	s := a.stages[file]
	if s == nil {
		s = &auditStage{file: file}
		a.stages[file] = s
	}
	s.keys = append(s.keys, bytes.Clone(key))
	var err error
	if len(key) == len(stageKey(file)) {
		s.stage, s.route, err = decodeStage(file, value)
	} else {
		var sp span
		sp, err = decodeChunk(value)
		s.chunks = append(s.chunks, sp)
		if index := binary.BigEndian.Uint32(key[len(key)-4:]); err == nil && int(index) != len(s.chunks)-1 {
			err = fmt.Errorf("%w: chunk %d stands at place %d", ErrCorrupt, index, len(s.chunks)-1)
		}
	}
	if err != nil {
		a.badStage(s, err)
	}
}

func (a *audit) badStage(s *auditStage, err error) {
	if !s.bad {
		a.problems.add(Problem{Kind: "stage", Detail: fmt.Sprintf("%s: %v", s.file, err)})
	}
	s.bad = true
}

// joinStages finds out which numbers belong to which stage.
func (a *audit) joinStages() {
	for _, s := range a.stages {
		if s.stage == nil {
			a.badStage(s, fmt.Errorf("%w: there is no head", ErrCorrupt))
		}
		if s.bad {
			continue
		}
		r := a.route(s.route)
		if !r.valid && !r.named {
			a.badStage(s, fmt.Errorf("%w: route %d is unknown", ErrCorrupt, s.route))
		}
		for _, sp := range s.chunks {
			r.extents = append(r.extents, auditExtent{sp, s})
		}
	}
	for _, r := range a.routes {
		slices.SortFunc(r.extents, func(a, b auditExtent) int {
			if a.lo < b.lo {
				return -1
			}
			return 1
		})
		hi := uint64(0)
		for _, e := range r.extents {
			if e.lo < hi || e.hi < e.lo {
				a.badStage(e.stage, fmt.Errorf("%w: its numbers %d to %d are in another chunk, too", ErrCorrupt, e.lo, e.hi))
				continue
			}
			hi = e.hi
		}
		r.extents = slices.DeleteFunc(r.extents, func(e auditExtent) bool { return e.stage.bad })
	}
}

// covering finds the stage that a number belongs to.
func (r *auditRoute) covering(seq uint64) *auditStage {
	i, _ := slices.BinarySearchFunc(r.extents, seq, func(e auditExtent, seq uint64) int {
		if e.lo <= seq {
			return -1
		}
		return 1
	})
	if i > 0 && seq < r.extents[i-1].hi {
		return r.extents[i-1].stage
	}
	return nil
}

func (a *audit) addMessage(key, value []byte) {
	r := a.addRecord(key, value)
	seq, row := lastUint64(key), tally{1, uint64(len(value))}
	if s := r.covering(seq); s != nil {
		s.found.addRow(key[0], value)
	} else if key[0] == kindMessage {
		r.addReady(seq, row)
	} else {
		r.found.of(key[0]).add(row)
	}
}

func (r *auditRoute) addReady(seq uint64, row tally) {
	if r.found.pending.count == 0 || seq < r.lowest {
		r.lowest = seq
	}
	r.found.pending.add(row)
}

func (a *audit) addDelayed(key, value []byte) {
	r := a.addRecord(key, value)
	r.found.delayed.add(tally{1, uint64(len(value))})
	if due := dueOf(key); due <= 0 {
		a.problems.add(Problem{Kind: "delayed-key", Route: r.name, Detail: fmt.Sprintf("message %d is due at %d", lastUint64(key), due)})
	}
}

// addRecord verifies one record.
func (a *audit) addRecord(key, value []byte) *auditRoute {
	r := a.route(binary.BigEndian.Uint32(key[1:]))
	seq := lastUint64(key)
	r.found.next = max(r.found.next, seq+1)
	m, err := decodeRecord(value)
	if err == nil {
		t := a.users[m.UID]
		t.add(tally{1, uint64(len(value))})
		a.users[m.UID] = t
	} else {
		r.corrupt++
		a.problems.add(Problem{Kind: "record", Route: r.name, Detail: fmt.Sprintf("message %d of kind %q: %v", seq, key[0], err)})
	}
	return r
}

// judgeStages compares each stage with its rows. The rows of one that is not in
// order become ready: the close of its file may have returned 0.
func (a *audit) judgeStages() {
	for _, s := range a.stages {
		if s.bad {
			continue
		}
		r := a.route(s.route)
		size := uint64(0)
		for _, sp := range s.chunks {
			size += sp.hi - sp.lo
		}
		switch held := s.stage.content; {
		case size != held.all().count:
			a.badStage(s, fmt.Errorf("%w: its chunks have %d entries, its head says %d", ErrCorrupt, size, held.all().count))
		case s.found != held:
			a.badStage(s, fmt.Errorf("%w: %+v were found, its head says %+v", ErrCorrupt, s.found, held))
		}
		if s.bad {
			r.found.dead.add(s.found.dead)
			r.found.partial.add(s.found.partial)
			if s.found.messages.count > 0 {
				r.addReady(s.chunks[0].lo, tally{})
				r.found.pending.add(s.found.messages)
			}
			continue
		}
		r.found.staged.add(s.found.all())
		for _, sp := range s.chunks {
			r.found.next = max(r.found.next, sp.hi)
		}
	}
}

// judgeRoutes compares each route with its rows.
func (a *audit) judgeRoutes() {
	names := map[string]uint32{}
	for _, id := range sortedKeys(a.routes) {
		r := a.routes[id]
		if other, taken := names[r.name]; r.named && taken {
			a.problems.add(Problem{Kind: "route-name", Route: r.name, Detail: fmt.Sprintf("routes %d and %d have it", other, id)})
			r.named = false
		}
		if !r.named {
			r.name = recoveredName(names, id)
			a.problems.add(Problem{Kind: "route-name", Route: r.name, Detail: fmt.Sprintf("route %d has none", id)})
		}
		names[r.name] = id
		a.judgeCounters(r)
	}
}

// recoveredName is the name of a route that has lost its own.
func recoveredName(taken map[string]uint32, id uint32) string {
	name := fmt.Sprintf("recovered-%d", id)
	for _, used := taken[name]; used; _, used = taken[name] {
		name += "-"
	}
	return name
}

func (a *audit) judgeCounters(r *auditRoute) {
	if !r.valid {
		a.problems.add(Problem{Kind: "counters", Route: r.name, Detail: "there are none that can be read"})
		return
	}
	got, want := r.stored, r.found
	if got.next < want.next {
		a.problems.add(Problem{Kind: "next", Route: r.name, Detail: fmt.Sprintf("next is %d, %d is in use", got.next, want.next-1)})
	}
	if want.pending.count > 0 && got.head > r.lowest {
		a.problems.add(Problem{Kind: "head", Route: r.name, Detail: fmt.Sprintf("head is %d, %d is ready", got.head, r.lowest)})
	}
	got.next, got.head, got.swept, want.next, want.head = 0, 0, 0, 0, 0
	got.drops = drops{} // of what is not there any more
	if got != want {
		a.problems.add(Problem{Kind: "counters", Route: r.name, Detail: fmt.Sprintf("stored %+v, found %+v", got, want)})
	}
}
