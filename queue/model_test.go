package queue

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"
)

func (m *model) step() {
	// Small numbers are drawn more often.
	m.oneOf(append([]func(){m.put, m.lease, m.append, m.crashDuring, m.begin, m.put, m.commit, m.crash, m.lease,
		m.put, m.requeue, m.crashDuring, m.restart, m.instalment, m.redrive}, m.writes()...))
}

// writes lists the operations that write.
func (m *model) writes() []func() {
	return []func(){m.put, m.put, m.put, m.replace, m.commit, m.discard,
		m.append, m.append, m.ack, m.ack, m.nack, m.deadLetter, m.instalment, m.redrive, m.rename}
}

func (m *model) oneOf(ops []func()) {
	ops[rapid.IntRange(0, len(ops)-1).Draw(m.t, "op")]()
}

func (m *model) pickRoute() *Route {
	return m.routes[rapid.IntRange(0, len(m.routes)-1).Draw(m.t, "route")]
}

func (m *model) begin() {
	f := m.newFile()
	m.open = append(m.open, &modelStage{stage: m.pickRoute().NewStage(f, StageInfo{File: "f"}), file: f})
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
	if len(m.open) == 0 {
		m.begin()
	}
	s := m.pick()
	m.putAt(s, len(s.durable))
}

func (m *model) replace() {
	if s := m.pick(); s != nil {
		m.putAt(s, rapid.IntRange(0, len(s.durable)).Draw(m.t, "keep"))
	}
}

func (m *model) putAt(s *modelStage, keep int) {
	add := m.messages(s.file, &s.line)
	if err := putOne(s.stage, keep, add); err != nil {
		m.t.Fatalf("put: %v", err)
	}
	m.puts++
	s.before, m.putting = s.durable, s
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
		switch rapid.IntRange(0, 9).Draw(m.t, "dead") {
		case 0:
			add[i].Reason = "not-json"
		case 1:
			add[i].Reason, add[i].Partial = "torn", true
		}
	}
	return add
}

// enter notes the place of a message in the route.
func (m *model) enter(a Message) modelMessage {
	m.clock++
	m.order[a.ID] = m.clock
	return modelMessage{id: a.ID, dead: a.Reason != ""}
}

func (m *model) commit() {
	s := m.pick()
	if s == nil {
		return
	}
	if err := commitOne(s.stage); err != nil {
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

// instalment commits the first entries of a stage that goes on.
func (m *model) instalment() {
	s := m.pick()
	if s == nil {
		return
	}
	n := rapid.IntRange(0, len(s.durable)).Draw(m.t, "first")
	s.before, m.putting = s.durable, s
	s.committed++
	if err := s.stage.CommitFirst(n, s.committed); err != nil {
		m.t.Fatalf("commit a part: %v", err)
	}
	if got := s.stage.Info().Committed; got != s.committed {
		m.t.Fatalf("committed up to %d, want %d", got, s.committed)
	}
	for _, e := range s.durable[:n] {
		m.committed[e.id] = &e
	}
	s.durable = s.durable[n:]
}

// rename changes what a stage remembers, and nothing else.
func (m *model) rename() {
	s := m.pick()
	if s == nil {
		return
	}
	s.before, m.putting = s.durable, s
	s.stage.SetInfo("renamed", true)
	if err := s.stage.Put(len(s.durable), nil); err != nil {
		m.t.Fatalf("put: %v", err)
	}
	s.held = true
}

// redrive lets a message that was set aside go again.
func (m *model) redrive() {
	r := m.pickRoute()
	list := m.setAside(r)
	if len(list) == 0 {
		return
	}
	e := list[rapid.IntRange(0, len(list)-1).Draw(m.t, "entry")]
	again := *e.Message
	again.Reason, again.Partial = "", false
	if err := r.Replace(e.state, e.Place, []Message{again}); err != nil {
		m.t.Fatalf("replace: %v", err)
	}
	if err := r.Purge(e.state, e.Place); !errors.Is(err, ErrNotFound) {
		m.t.Fatalf("purge of what is gone: %v, want %v", err, ErrNotFound)
	}
	m.redriven = &redriven{r.Name(), e.Entry, m.order[e.ID]}
	m.clock++
	m.order[e.ID] = m.clock
	// If a crash undoes it, it is set aside still.
	m.committed[e.ID].dead, m.committed[e.ID].refused = false, true
}

// redriven is a message that the last operation has let go again, and its place
// in the order before.
type redriven struct {
	route string
	Entry
	order int
}

// undoRedrive finds out whether a crash has left a message that was redriven in its
// old place: set aside, or, if that was not synced, ready or delayed.
func (m *model) undoRedrive(was *redriven) {
	r, err := m.q.Route(was.route)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, state := range []State{Pending, Delayed, Dead, Partial} {
		for e, err := range r.Entries(state, Place{}) {
			if err != nil {
				m.t.Fatal(err)
			}
			if e.ID == was.ID && e.Place.Seq == was.Place.Seq {
				m.order[e.ID] = was.order
			}
		}
	}
}

func (m *model) append() {
	f, line := m.newFile(), uint32(0)
	add := m.messages(f, &line)
	if err := m.pickRoute().Append(add); err != nil {
		m.t.Fatalf("append: %v", err)
	}
	m.appended = nil
	for _, a := range add {
		e := m.enter(a)
		m.committed[e.id] = &e
		m.appended = append(m.appended, e.id)
	}
}

// tryLease leases up to max messages without waiting.
func (m *model) tryLease(r *Route, max uint64) []*Lease {
	leases, _, err := r.tryLease(max)
	if err != nil {
		m.t.Fatalf("lease: %v", err)
	}
	m.checkOrder(r, leases)
	for _, l := range leases {
		e := m.committed[l.ID]
		switch {
		case e == nil:
			m.t.Fatalf("leased %s, which was not committed", l.ID)
		case e.dead:
			m.t.Fatalf("leased dead letter %s", l.ID)
		}
		e.refused = false
		for _, o := range m.leases {
			if o.ID == l.ID {
				m.t.Fatalf("%s was leased twice", l.ID)
			}
		}
	}
	return leases
}

// checkOrder checks the order of what was leased at once: that of the Puts, or, in a
// route that is NewestFirst, files in the reverse order and their messages in it.
func (m *model) checkOrder(r *Route, leases []*Lease) {
	place, below := 0, m.clock+1
	for i, l := range leases {
		at := m.order[l.ID]
		if r.Options().Order == NewestFirst && i > 0 && (at < place || fileOf(l.ID) != fileOf(leases[i-1].ID)) {
			below, place = m.order[leases[i-1].ID], 0
			for j := i - 1; j >= 0 && fileOf(leases[j].ID) == fileOf(leases[i-1].ID); j-- {
				below = min(below, m.order[leases[j].ID])
			}
		}
		if at <= place || at >= below {
			m.t.Fatalf("leased %s (place %d) after place %d and before %d", l.ID, at, place, below)
		}
		place = at
	}
}

func (m *model) lease() {
	m.leases = append(m.leases, m.tryLease(m.pickRoute(), uint64(rapid.IntRange(1, 5).Draw(m.t, "max")))...)
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
		if err := l.route.Ack(l); err != nil {
			m.t.Fatalf("ack: %v", err)
		}
		if err := l.route.Ack(l); !errors.Is(err, ErrNotLeased) {
			m.t.Fatalf("second ack: %v, want %v", err, ErrNotLeased)
		}
		m.committed[l.ID].settled = true
	}
}

func (m *model) requeue() {
	if l := m.takeLease(); l != nil {
		l.route.Requeue(l)
	}
}

func (m *model) nack() {
	if l := m.takeLease(); l != nil {
		if err := l.route.Nack(l, time.Now().Add(-time.Millisecond)); err != nil {
			m.t.Fatalf("nack: %v", err)
		}
	}
}

func (m *model) deadLetter() {
	if l := m.takeLease(); l != nil {
		if err := l.route.DeadLetter(l, "too-large"); err != nil {
			m.t.Fatalf("dead-letter: %v", err)
		}
		m.committed[l.ID].refused = true
	}
}
