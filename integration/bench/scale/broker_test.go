package scale

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"spoolfs/publisher"
)

const (
	// turn is how often the broker works. What comes in between it puts in the order
	// of the nodes, so that no chance of the machine has a say.
	turn = 10 * time.Millisecond

	// dialTime is how long a dial may take. It is never over at a turn.
	dialTime = 10*time.Second + turn/2
)

// broker is the model.
type broker struct {
	settings settings
	done     chan struct{} // closed when all nodes have caught up

	mu          sync.Mutex // guards what follows
	up          bool
	since       time.Time // it is up, or away
	dials       []time.Duration
	failed      int
	waiting     []*dialing
	sessions    map[*session]struct{}
	line        []item // taken, the first is next
	unconfirmed int    // of all sessions
	hands       float64
	room        float64 // connections and messages that it may take yet in this turn
	score       score
}

// dialing is somebody who waits for a connection.
type dialing struct {
	node   *node
	at     time.Time
	gone   bool
	answer chan *session
}

func newBroker(s settings) *broker {
	return &broker{settings: s, sessions: map[*session]struct{}{}, done: make(chan struct{})}
}

var errRefused error = &publisher.Fault{Cause: publisher.Unreachable, Err: errors.New("connection refused")}

// dial is what a node's publisher calls.
func (b *broker) dial(ctx context.Context, n *node) (publisher.Session, error) {
	d := &dialing{node: n, at: time.Now(), answer: make(chan *session, 1)}
	if !b.enter(d) {
		return nil, errRefused
	}
	timer := time.NewTimer(dialTime)
	defer timer.Stop()
	select {
	case s := <-d.answer:
		if s == nil {
			return nil, errRefused
		}
		return s, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d.gone = true
	b.failed++
	return nil, &publisher.Fault{Cause: publisher.Silent, Err: errors.New("no answer")}
}

// enter has somebody wait for a connection, if the broker is up.
func (b *broker) enter(d *dialing) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dials = append(b.dials, d.at.Sub(b.since))
	if b.up {
		b.waiting = append(b.waiting, d)
	}
	return b.up
}

// serve works until ctx ends or the broker is stopped.
func (b *broker) serve(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(turn)
		if !b.work() {
			return
		}
	}
}

// stop has the broker be away.
func (b *broker) stop() {
	b.turnUp(false)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.waiting {
		if !d.gone {
			d.answer <- nil
		}
	}
	for s := range b.sessions {
		s.endLocked(errRefused)
	}
	b.waiting, b.line = nil, nil
}

func (b *broker) turnUp(up bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up, b.since, b.dials, b.failed, b.score = up, time.Now(), nil, 0, score{repeats: b.score.repeats}
}

// work is one turn, if the broker is up.
func (b *broker) work() bool {
	for done := range b.decide() {
		b.deliver(done)
	}
	return b.isUp()
}

func (b *broker) isUp() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.up
}

// decide makes connections and confirms messages. It returns what of that is to be
// delivered, as deliver wants it.
func (b *broker) decide() func(func([]item) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.up {
		return func(func([]item) bool) {}
	}
	b.score.peakUnconfirmed = max(b.score.peakUnconfirmed, b.unconfirmed)
	b.accept()
	for _, s := range slices.SortedFunc(keys(b.sessions), func(a, o *session) int { return a.node.number - o.node.number }) {
		n := min(len(s.network), b.settings.Credit-s.taken)
		b.line = append(b.line, s.network[:n]...)
		s.network = s.network[n:]
		s.taken += n
	}
	return inRounds(b.confirm())
}

// inRounds are items in parts in which a session has no more than one.
func inRounds(all []item) func(func([]item) bool) {
	return func(yield func([]item) bool) {
		for len(all) > 0 {
			var now, later []item
			has := map[*session]bool{}
			for _, m := range all {
				if has[m.session] {
					later = append(later, m)
				} else {
					now, has[m.session] = append(now, m), true
				}
			}
			if !yield(now) {
				return
			}
			all = later
		}
	}
}

// deliver tells sessions of a verdict each, and returns when all have done what follows
// from it: what a publisher does depends on how many it has read at once.
func (b *broker) deliver(verdicts []item) {
	b.mu.Lock()
	for _, m := range verdicts {
		if !m.session.closed {
			m.session.verdicts <- publisher.Verdict{Tag: m.tag, Outcome: publisher.Confirmed}
		}
	}
	b.mu.Unlock()
	synctest.Wait()
}

func keys(m map[*session]struct{}) func(func(*session) bool) {
	return func(yield func(*session) bool) {
		for s := range m {
			if !yield(s) {
				return
			}
		}
	}
}

// accept makes connections, as many as a turn has room for.
func (b *broker) accept() {
	slices.SortFunc(b.waiting, func(a, o *dialing) int {
		return cmp.Or(a.at.Compare(o.at), a.node.number-o.node.number)
	})
	b.hands = min(b.hands, 1) + b.settings.Handshakes*turn.Seconds()
	for b.hands >= 1 && len(b.waiting) > 0 {
		d := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.hands--
		if d.gone {
			continue
		}
		s := &session{broker: b, node: d.node, verdicts: make(chan publisher.Verdict, 1)}
		b.sessions[s] = struct{}{}
		b.score.peakConnections = max(b.score.peakConnections, len(b.sessions))
		d.answer <- s
	}
}

// confirm is done with messages, as many as a turn has room for, and returns those with
// somebody to be told.
func (b *broker) confirm() (live []item) {
	b.room = min(b.room, 1) + b.settings.Confirms*turn.Seconds()
	n := min(int(b.room), len(b.line))
	b.room -= float64(n)
	for _, m := range b.line[:n] {
		b.score.count(m)
		if s := m.session; !s.closed {
			s.taken--
			b.unconfirmed--
			live = append(live, m)
		}
	}
	b.line = b.line[n:]
	return live
}
