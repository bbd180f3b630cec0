package queue

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"
)

var crashSteps = flag.Int("crash.steps", 70, "operations and crashes in each run of the model test")

// TestQueue_CrashLosesNothing runs random operations and crashes against a
// model. A crash keeps a random part of what was not synced. It proves Q1, Q2,
// Q3, Q4 and Q6 (D3, and D8: the depth equals a scan after any crash); rapid logs the seed of a failure and shrinks it.
func TestQueue_CrashLosesNothing(t *testing.T) {
	for part := range 4 { // some 2,200 crashes in all
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			var sum model
			rapid.Check(t, func(rt *rapid.T) {
				m := newModel(rt)
				defer m.close()
				for range *crashSteps {
					m.step()
				}
				m.crash()
				m.drain()
				sum.crashes += m.crashes
				sum.during += m.during
				sum.undone += m.undone
				sum.puts += m.puts
			})
			t.Logf("%d crashes, %d of them during an operation, %d undid it; %d puts", sum.crashes, sum.during, sum.undone, sum.puts)
			if sum.undone == 0 {
				t.Error("no crash has undone anything: the test does not test")
			}
		})
	}
}

// modelMessage is what the model knows of a message.
type modelMessage struct {
	id   ID
	dead bool // stored as a dead letter or partial file

	// refused: dead-lettered by the publisher. If that was not synced, it may
	// be a message again.
	refused bool

	// settled: it may be gone, or, if that was not synced, still there.
	settled bool
}

// modelStage is a stage with its durable list.
type modelStage struct {
	stage   *Stage
	file    FileID
	durable []modelMessage
	before  []modelMessage // before the last Put
	line    uint32

	committed uint64
	held      bool
}

// model runs a queue and remembers what it must not forget.
type model struct {
	t      *rapid.T
	fs     *vfs.MemFS
	disk   *crashingDisk
	q      *Queue
	routes []*Route
	open   []*modelStage
	leases []*Lease

	// order is the order of the last Puts that stored each message.
	committed map[ID]*modelMessage
	order     map[ID]int
	clock     int
	last      map[ID]int // how often it was leased

	// What the last operation has put or appended: after a crash in the midst
	// of it, all of that is there or nothing.
	putting  *modelStage
	appended []ID
	redriven *redriven

	crashes, during, undone, puts, files int
}

func newModel(t *rapid.T) *model {
	m := &model{
		t: t, fs: vfs.NewCrashableMem(),
		committed: map[ID]*modelMessage{}, order: map[ID]int{}, last: map[ID]int{},
	}
	m.reopen()
	return m
}

func (m *model) close() {
	if m.q != nil {
		m.q.Close()
	}
}

func testOptions(fs vfs.FS) Options {
	return Options{
		FS: fs, CommitGrace: -1, LockTimeout: -1,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// reopen opens the store and commits every stage that is handed back, as a
// daemon does whose files are all closed.
func (m *model) reopen() {
	m.disk = &crashingDisk{fs: m.fs}
	q, stages, err := Open("store", testOptions(errorfs.Wrap(m.fs, m.disk)))
	if err != nil {
		m.t.Fatalf("open after %d crashes: %v", m.crashes, err)
	}
	if d := q.Damage(); d != (DamageReport{}) {
		m.t.Fatalf("a crash is taken for damage: %+v", d)
	}
	m.q, m.leases, m.routes = q, nil, nil
	for _, name := range []string{"default", "other", "newest"} {
		r, err := q.Route(name)
		if err != nil {
			m.t.Fatal(err)
		}
		if name == "newest" {
			if err := r.SetOptions(RouteOptions{Order: NewestFirst}); err != nil {
				m.t.Fatal(err)
			}
		}
		m.routes = append(m.routes, r)
	}
	handed := map[FileID]*Stage{}
	for _, s := range stages {
		handed[s.File()] = s
	}
	for _, s := range m.open {
		m.handedBack(s, handed[s.file])
		m.commitModel(s)
	}
	if m.redriven != nil {
		m.undoRedrive(m.redriven)
	}
	m.open, m.putting, m.appended, m.redriven = nil, nil, nil, nil
	for _, s := range stages {
		if err := s.Commit(); err != nil {
			m.t.Fatal(err)
		}
	}
	m.checkCounters()
}

// handedBack compares a stage with what opening the store has returned.
func (m *model) handedBack(s *modelStage, back *Stage) {
	got := []ID{}
	if back != nil {
		got = stageContent(m.t, back)
	}
	same := func(want []modelMessage) bool {
		return slices.EqualFunc(got, want, func(id ID, e modelMessage) bool { return id == e.id })
	}
	switch {
	case same(s.durable):
		if s != m.putting && back != nil && (back.Info().Held != s.held || back.Info().Committed != s.committed) {
			m.t.Fatalf("stage %s came back with %+v, want held=%t, committed %d", s.file, back.Info(), s.held, s.committed)
		}
	case s == m.putting && same(s.before):
		s.durable = s.before
		m.undone++
	default:
		m.t.Fatalf("stage %s came back with %v, want %v", s.file, got, s.durable)
	}
}

// stageContent lists the messages of a stage in order.
func stageContent(t *rapid.T, s *Stage) []ID {
	var got []ID
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.ID)
	}
	return got
}

func (m *model) commitModel(s *modelStage) {
	for _, e := range s.durable {
		m.committed[e.id] = &e
	}
}

// crashingDisk takes a clone before the n-th write after n has been set.
type crashingDisk struct {
	fs *vfs.MemFS

	mu    sync.Mutex
	n     int
	cfg   vfs.CrashCloneCfg
	clone *vfs.MemFS
}

func (d *crashingDisk) String() string { return "crashing disk" }

func (d *crashingDisk) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n--; d.n == 0 {
		d.clone = d.fs.CrashClone(d.cfg)
	}
	return nil
}

func (m *model) crashCfg() vfs.CrashCloneCfg {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(m.t, "crash"), 0))
	return vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng}
}

// crash goes on with a random possible state of the disk.
func (m *model) crash() {
	m.putting, m.appended, m.redriven = nil, nil, nil // they have returned
	m.crashTo(m.fs.CrashClone(m.crashCfg()))
}

// crashDuring goes on with the disk as it was while an operation ran.
func (m *model) crashDuring() {
	m.putting, m.appended, m.redriven = nil, nil, nil
	cfg, n := m.crashCfg(), rapid.IntRange(1, 4).Draw(m.t, "write")
	disk := m.disk
	disk.mu.Lock()
	disk.cfg, disk.n = cfg, n
	disk.mu.Unlock()
	m.oneOf(append(m.writes(), m.restart))
	disk.mu.Lock()
	clone := disk.clone
	disk.n = 0
	disk.mu.Unlock()
	if clone == nil {
		return // it has not written that much
	}
	m.during++
	m.crashTo(clone)
}

func (m *model) crashTo(fs *vfs.MemFS) {
	m.q.Close()
	m.fs = fs
	m.crashes++
	appended := m.appended
	m.reopen()
	if len(appended) > 0 {
		m.allOrNone(appended)
	}
}

// allOrNone checks an Append that a crash has met, and forgets it if it is
// not there.
func (m *model) allOrNone(appended []ID) {
	found, err := scanIDs(m.q)
	if err != nil {
		m.t.Fatal(err)
	}
	n := 0
	for _, id := range appended {
		n += found[id]
	}
	switch n {
	case len(appended):
	case 0:
		m.undone++
		for _, id := range appended {
			delete(m.committed, id)
		}
	default:
		m.t.Fatalf("%d of %d messages of an append survived", n, len(appended))
	}
}

// restart is a clean stop and start.
func (m *model) restart() {
	if err := m.q.Close(); err != nil {
		m.t.Fatalf("close: %v", err)
	}
	m.reopen()
}

// checkCounters compares the counters with a scan (Q6).
func (m *model) checkCounters() {
	for _, r := range m.routes {
		if err := scanCounters(r); err != nil {
			m.t.Fatalf("after %d crashes: %v", m.crashes, err)
		}
	}
}

// drain commits everything, leases what there is and compares it with what the
// model knows.
func (m *model) drain() {
	for _, s := range slices.Clone(m.open) {
		if err := s.stage.Commit(); err != nil {
			m.t.Fatal(err)
		}
		m.commitModel(s)
	}
	got := map[ID]bool{}
	for _, l := range m.leases {
		got[l.ID] = true
	}
	for _, r := range m.routes {
		m.drainRoute(r, got)
	}
	for id, e := range m.committed {
		if !e.settled && !got[id] {
			m.t.Errorf("%+v is lost", *e)
		}
	}
	for _, l := range m.leases {
		if err := l.route.Ack(l); err != nil {
			m.t.Fatal(err)
		}
	}
	m.checkCounters()
}

func (m *model) drainRoute(r *Route, got map[ID]bool) {
	for deadline := time.Now().Add(bound); ; {
		for _, l := range m.tryLease(r, 100) {
			got[l.ID] = true
			m.leases = append(m.leases, l)
		}
		s, err := r.Stats()
		if err != nil || time.Now().After(deadline) {
			m.t.Fatalf("drain: %+v, %v", s, err)
		}
		if s.Delayed+s.Ready == 0 {
			break
		}
	}
	for _, l := range m.setAside(r) {
		if e := m.committed[l.ID]; e == nil || !e.dead && !e.refused {
			m.t.Errorf("%s is set aside", l.ID)
		}
		got[l.ID] = true
	}
}

// setAside lists dead letters and partial files.
func (m *model) setAside(r *Route) []asideEntry {
	var list []asideEntry
	for _, state := range []State{Dead, Partial} {
		for e, err := range r.Entries(state, Place{}) {
			if err != nil {
				m.t.Fatal(err)
			}
			if e.Partial != (state == Partial) {
				m.t.Fatalf("%s has state %d and partial=%t", e.ID, state, e.Partial)
			}
			list = append(list, asideEntry{state, e})
		}
	}
	return list
}

type asideEntry struct {
	state State
	Entry
}
