package queue

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

var crashSteps = flag.Int("crash.steps", 120, "operations and crashes in each run of the model test")

// TestQueue_CrashLosesNothing runs random operations and crashes against a
// model. A crash keeps a random part of what was not synced. It proves Q1, Q2,
// Q3, Q4 and Q6; rapid logs the seed of a failure and shrinks it.
func TestQueue_CrashLosesNothing(t *testing.T) {
	crashes, puts := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt)
		defer m.close()
		for range *crashSteps {
			m.step()
		}
		m.crash()
		m.drain()
		crashes += m.crashes
		puts += m.puts
	})
	t.Logf("%d crashes, %d puts", crashes, puts)
	if crashes == 0 {
		t.Error("no crash was tried: the test does not test")
	}
}

// modelMessage is what the model knows of a message.
type modelMessage struct {
	id   ID
	dead bool // stored as a dead letter

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
	line    uint32
}

// model runs a queue and remembers what it must not forget.
type model struct {
	t      *rapid.T
	fs     *vfs.MemFS
	q      *Queue
	route  *Route
	open   []*modelStage
	leases []*Lease

	// order is the order of the last Puts that stored each message.
	committed map[ID]*modelMessage
	order     map[ID]int
	clock     int
	last      map[ID]int // how often it was leased

	crashes, puts, files int
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
	q, stages, err := Open("store", testOptions(m.fs))
	if err != nil {
		m.t.Fatalf("open after %d crashes: %v", m.crashes, err)
	}
	if d := q.Damage(); d != (DamageReport{}) {
		m.t.Fatalf("a crash is taken for damage: %+v", d)
	}
	m.q, m.leases = q, nil
	if m.route, err = q.Route("default"); err != nil {
		m.t.Fatal(err)
	}
	handed := map[FileID]*Stage{}
	for _, s := range stages {
		handed[s.File()] = s
	}
	for _, s := range m.open {
		back := handed[s.file]
		switch {
		case back == nil && len(s.durable) > 0:
			m.t.Fatalf("stage %s with %d durable entries was not handed back", s.file, len(s.durable))
		case back != nil && back.Len() != len(s.durable):
			m.t.Fatalf("stage %s came back with %d entries, want %d", s.file, back.Len(), len(s.durable))
		}
		m.commitModel(s)
	}
	m.open = nil
	for _, s := range stages {
		if err := s.Commit(); err != nil {
			m.t.Fatal(err)
		}
	}
	m.checkCounters()
}

func (m *model) commitModel(s *modelStage) {
	for _, e := range s.durable {
		m.committed[e.id] = &e
	}
}

func (m *model) step() {
	ops := []func(){m.begin, m.begin, m.put, m.put, m.put, m.replace, m.commit, m.commit, m.discard,
		m.append, m.lease, m.lease, m.ack, m.ack, m.requeue, m.nack, m.deadLetter, m.crash, m.restart}
	ops[rapid.IntRange(0, len(ops)-1).Draw(m.t, "op")]()
}

func (m *model) begin() {
	f := m.newFile()
	m.open = append(m.open, &modelStage{stage: m.route.NewStage(f, StageInfo{File: "f"}), file: f})
}

func (m *model) newFile() FileID {
	m.files++
	return FileID{byte(m.files >> 8), byte(m.files)}
}

func (m *model) pick() *modelStage {
	if len(m.open) == 0 {
		return nil
	}
	return m.open[rapid.IntRange(0, len(m.open)-1).Draw(m.t, "stage")]
}

func (m *model) put() {
	if s := m.pick(); s != nil {
		m.putAt(s, len(s.durable))
	}
}

func (m *model) replace() {
	if s := m.pick(); s != nil {
		m.putAt(s, rapid.IntRange(0, len(s.durable)).Draw(m.t, "keep"))
	}
}

func (m *model) putAt(s *modelStage, keep int) {
	add := m.messages(s.file, &s.line)
	if err := s.stage.Put(keep, add); err != nil {
		m.t.Fatalf("put: %v", err)
	}
	m.puts++
	for _, gone := range s.durable[keep:] {
		m.order[gone.id] = -1
	}
	s.durable = s.durable[:keep:keep]
	for _, a := range add {
		s.durable = append(s.durable, m.enter(a))
	}
}

func (m *model) messages(f FileID, line *uint32) []Message {
	add := make([]Message, rapid.IntRange(0, 3).Draw(m.t, "n"))
	for i := range add {
		*line++
		add[i] = Message{ID: f.MessageID(*line), Line: *line, Body: []byte(fmt.Sprint("body ", *line)), Ingested: time.Unix(1, 0)}
		if rapid.IntRange(0, 9).Draw(m.t, "dead") == 0 {
			add[i].Reason = "not-json"
		}
	}
	return add
}

// enter notes the place of a message in the route.
func (m *model) enter(a Message) modelMessage {
	m.clock++
	m.order[a.ID] = m.clock
	return modelMessage{id: a.ID, dead: a.Dead()}
}

func (m *model) commit() {
	s := m.pick()
	if s == nil {
		return
	}
	if err := s.stage.Commit(); err != nil {
		m.t.Fatalf("commit: %v", err)
	}
	m.commitModel(s)
	m.drop(s)
}

func (m *model) discard() {
	s := m.pick()
	if s == nil {
		return
	}
	if err := s.stage.Discard(); err != nil {
		m.t.Fatalf("discard: %v", err)
	}
	for _, e := range s.durable {
		e.settled = true
		m.committed[e.id] = &e
	}
	m.drop(s)
}

func (m *model) drop(s *modelStage) {
	m.open = slices.DeleteFunc(m.open, func(o *modelStage) bool { return o == s })
}

func (m *model) append() {
	f, line := m.newFile(), uint32(0)
	add := m.messages(f, &line)
	if err := m.route.Append(add); err != nil {
		m.t.Fatalf("append: %v", err)
	}
	for _, a := range add {
		e := m.enter(a)
		m.committed[e.id] = &e
	}
}

// tryLease leases up to max messages without waiting.
func (m *model) tryLease(max uint64) []*Lease {
	leases, _, err := m.route.tryLease(max)
	if err != nil {
		m.t.Fatalf("lease: %v", err)
	}
	place := 0
	for _, l := range leases {
		e := m.committed[l.ID]
		switch {
		case e == nil:
			m.t.Fatalf("leased %s, which was not committed", l.ID)
		case e.dead:
			m.t.Fatalf("leased dead letter %s", l.ID)
		}
		e.refused = false
		if m.order[l.ID] <= place {
			m.t.Fatalf("leased %s (place %d) after place %d", l.ID, m.order[l.ID], place)
		}
		place = m.order[l.ID]
		for _, o := range m.leases {
			if o.ID == l.ID {
				m.t.Fatalf("%s was leased twice", l.ID)
			}
		}
	}
	return leases
}

func (m *model) lease() {
	m.leases = append(m.leases, m.tryLease(uint64(rapid.IntRange(1, 5).Draw(m.t, "max")))...)
}

// takeLease removes a lease from the list.
func (m *model) takeLease() *Lease {
	if len(m.leases) == 0 {
		return nil
	}
	i := rapid.IntRange(0, len(m.leases)-1).Draw(m.t, "lease")
	l := m.leases[i]
	m.leases = slices.Delete(m.leases, i, i+1)
	return l
}

func (m *model) ack() {
	if l := m.takeLease(); l != nil {
		if err := m.route.Ack(l); err != nil {
			m.t.Fatalf("ack: %v", err)
		}
		if err := m.route.Ack(l); !errors.Is(err, ErrNotLeased) {
			m.t.Fatalf("second ack: %v, want %v", err, ErrNotLeased)
		}
		m.committed[l.ID].settled = true
	}
}

func (m *model) requeue() {
	if l := m.takeLease(); l != nil {
		m.route.Requeue(l)
	}
}

func (m *model) nack() {
	if l := m.takeLease(); l != nil {
		if err := m.route.Nack(l, time.Now().Add(-time.Millisecond)); err != nil {
			m.t.Fatalf("nack: %v", err)
		}
	}
}

func (m *model) deadLetter() {
	if l := m.takeLease(); l != nil {
		if err := m.route.DeadLetter(l, "too-large"); err != nil {
			m.t.Fatalf("dead-letter: %v", err)
		}
		m.committed[l.ID].refused = true
	}
}

// crash goes on with a random possible state of the disk.
func (m *model) crash() {
	seed := rapid.Uint64().Draw(m.t, "crash")
	rng := rand.New(rand.NewPCG(seed, 0))
	fs := m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	m.q.Close()
	m.fs = fs
	m.crashes++
	m.reopen()
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
	if err := scanCounters(m.route); err != nil {
		m.t.Fatalf("after %d crashes: %v", m.crashes, err)
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
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		for _, l := range m.tryLease(100) {
			got[l.ID] = true
			m.leases = append(m.leases, l)
		}
		if s, err := m.route.Stats(); err != nil || s.Delayed+s.Ready == 0 {
			break
		}
	}
	for l, err := range m.route.Dead() {
		if err != nil {
			m.t.Fatal(err)
		}
		if e := m.committed[l.ID]; e == nil || !e.dead && !e.refused {
			m.t.Errorf("%s is a dead letter", l.ID)
		}
		got[l.ID] = true
	}
	for id, e := range m.committed {
		if !e.settled && !got[id] {
			m.t.Errorf("%+v is lost", *e)
		}
	}
	if err := m.route.Ack(m.leases...); err != nil {
		m.t.Fatal(err)
	}
	m.checkCounters()
}

// scanCounters counts the rows of a route and compares with its Stats.
func scanCounters(r *Route) error {
	want, err := r.Stats()
	if err != nil {
		return err
	}
	var got Stats
	for kind, n := range map[byte]*uint64{kindMessage: &got.Ready, kindDead: &got.Dead, kindDelayed: &got.Delayed} {
		err := r.q.eachRow(routeKey(kind, r.id), routeKey(kind, r.id+1), func(key, value []byte) error {
			got.Bytes += uint64(len(value))
			r.q.mu.Lock()
			defer r.q.mu.Unlock()
			seq := lastUint64(key)
			if i := r.searchStagedLocked(seq + 1); kind != kindDelayed && i > 0 && r.staged[i-1].hi > seq {
				got.Staged++
			} else {
				*n++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	got.Leased = want.Leased
	got.Ready -= got.Leased
	got.Oldest = want.Oldest
	if got != want {
		return fmt.Errorf("counters are %+v, a scan finds %+v", want, got)
	}
	return nil
}

// leaseAll leases exactly n messages or fails.
func leaseAll(t testing.TB, r *Route, n int) []*Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var leases []*Lease
	for len(leases) < n {
		more, err := r.Lease(ctx, n-len(leases))
		if err != nil {
			t.Fatalf("leased %d of %d: %v", len(leases), n, err)
		}
		leases = append(leases, more...)
	}
	return leases
}
