package publisher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"spoolfs/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a Session whose faults are written by the test.
type scripted struct {
	broker   *broker
	mu       sync.Mutex
	closed   bool
	err      error
	verdicts chan Verdict
}

var _ Session = (*scripted)(nil)

// broker is the other side of scripted sessions. It remembers what was
// published, over all sessions.
type broker struct {
	flushes atomic.Int64

	mu        sync.Mutex
	published []queue.ID
	dials     int

	// on decides what a session does with a publication; dial may refuse.
	on   func(s *scripted, p Publication) error
	dial func(n int) error
}

func (b *broker) Dial(context.Context) (Session, error) {
	b.mu.Lock()
	b.dials++
	n := b.dials
	b.mu.Unlock()
	if b.dial != nil {
		if err := b.dial(n); err != nil {
			return nil, err
		}
	}
	return &scripted{broker: b, verdicts: make(chan Verdict, 4096)}, nil
}

func (b *broker) ids() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprint(b.published)
}

func (s *scripted) Publish(p Publication) error {
	s.broker.mu.Lock()
	s.broker.published = append(s.broker.published, p.Message.ID)
	s.broker.mu.Unlock()
	if s.broker.on == nil {
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	return s.broker.on(s, p)
}

func (s *scripted) say(v Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.verdicts <- v
	}
}

func (s *scripted) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed, s.err = true, err
		close(s.verdicts)
	}
}

func (s *scripted) Flush() error {
	s.broker.flushes.Add(1)
	return nil
}

func (s *scripted) Verdicts() <-chan Verdict { return s.verdicts }
func (s *scripted) Blocked() string          { return "" }
func (s *scripted) Close() error             { s.end(nil); return nil }
func (s *scripted) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// rig is a publisher between a real queue and a scripted broker.
type rig struct {
	t      testing.TB
	queue  *queue.Queue
	route  *queue.Route
	broker *broker
	p      *Publisher
	stop   context.CancelFunc
	done   chan error
}

func newRig(t testing.TB, b *broker, opts Options) *rig {
	t.Helper()
	return newRigOn(t, vfs.Default, b, opts)
}

// newRigOn has the queue on a file system.
func newRigOn(t testing.TB, disk vfs.FS, b *broker, opts Options) *rig {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	q, _, err := queue.Open(t.TempDir(), queue.Options{Logger: log, FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	route, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	opts.Route, opts.Dial, opts.Exchange, opts.Logger = route, b.Dial, "xs_example", log
	opts.TopicPrefix = "v03"
	if opts.RetryMin == 0 {
		opts.RetryMin = time.Millisecond
	}
	p, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &rig{t: t, queue: q, route: route, broker: b, p: p, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- p.Run(ctx) }()
	t.Cleanup(func() {
		r.halt()
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// halt stops the publisher and waits for it.
func (r *rig) halt() {
	r.t.Helper()
	if r.done == nil {
		return
	}
	r.stop()
	if err := <-r.done; err != nil {
		r.t.Errorf("Run: %v", err)
	}
	r.done = nil
}

// append stores n messages and returns their IDs.
func (r *rig) append(n int) []queue.ID {
	r.t.Helper()
	f := queue.NewFileID()
	ms := make([]queue.Message, n)
	ids := make([]queue.ID, n)
	for i := range ms {
		ids[i] = f.MessageID(uint32(i + 1))
		ms[i] = queue.Message{ID: ids[i], Line: uint32(i + 1), Words: []string{"a"}, Ingested: time.Now()}
	}
	if err := r.route.Append(ms); err != nil {
		r.t.Fatal(err)
	}
	return ids
}

// until waits for a condition on the stats of queue and publisher.
func (r *rig) until(what string, cond func(queue.Stats, Stats) bool) {
	r.t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		q, err := r.route.Stats()
		if err != nil && !errors.Is(err, queue.ErrFault) {
			r.t.Fatal(err)
		}
		p := r.p.Stats()
		if err == nil && cond(q, p) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("never saw %s: %+v, %+v", what, q, p)
		}
	}
}

func (r *rig) untilEmpty() {
	r.t.Helper()
	r.until("an empty queue", func(q queue.Stats, p Stats) bool {
		return q.Ready+q.Leased+q.Delayed == 0 && p.InFlight == 0
	})
}

// TestPublisher_SessionLostRequeues proves P1 and P2.
func TestPublisher_SessionLostRequeues(t *testing.T) {
	b := &broker{}
	var mu sync.Mutex
	held := 0
	b.on = func(s *scripted, p Publication) error {
		mu.Lock()
		defer mu.Unlock()
		if held++; held <= 3 {
			if held == 3 {
				s.end(errors.New("connection reset"))
			}
			return nil // no verdict
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	r := newRig(t, b, Options{Window: 3})
	ids := r.append(5)
	r.untilEmpty()
	want := fmt.Sprint(append(append([]queue.ID{}, ids[:3]...), ids...))
	if got := b.ids(); got != want {
		t.Errorf("published\n%s\nwant\n%s", got, want)
	}
	s := r.p.Stats()
	if s.ConfirmedTotal != 5 || s.RequeuedTotal != 3 || s.SessionsTotal != 2 || !strings.Contains(s.LastError, "connection reset") {
		t.Errorf("stats are %+v", s)
	}
}

// TestPublisher_InvalidIsDeadLetter proves P3.
func TestPublisher_InvalidIsDeadLetter(t *testing.T) {
	b := &broker{}
	b.on = func(s *scripted, p Publication) error {
		if strings.HasSuffix(string(p.Message.ID), "-2") {
			return &InvalidError{Reason: "header-too-long"}
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	r := newRig(t, b, Options{Window: 1})
	ids := r.append(3)
	r.untilEmpty()
	for m, err := range r.route.Dead() {
		if err != nil || m.ID != ids[1] || m.Reason != "header-too-long" {
			t.Errorf("dead letter %+v, %v", m, err)
		}
	}
	if s := r.p.Stats(); s.ConfirmedTotal != 2 || s.InvalidTotal != 1 || s.SessionsTotal != 1 {
		t.Errorf("stats are %+v", s)
	}
}

// TestPublisher_CulpritStandsAlone: a message that makes the broker end the
// session is found by sending what was in flight one by one, and set aside; the
// others are published, and the window is wide again.
func TestPublisher_CulpritStandsAlone(t *testing.T) {
	b := &broker{}
	b.on = func(s *scripted, p Publication) error {
		if strings.HasSuffix(string(p.Message.ID), "-7") {
			s.end(&Fault{Class: Invalid, Cause: BadMessage, Culprit: true, Err: errors.New("406 too large")})
			return nil
		}
		s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		return nil
	}
	r := newRig(t, b, Options{Window: 16})
	ids := r.append(40)
	r.untilEmpty()
	for m, err := range r.route.Dead() {
		if err != nil || m.ID != ids[6] || m.Reason != "refused-by-broker: 406 too large" {
			t.Errorf("dead letter %+v, %v", m, err)
		}
	}
	if s := r.p.Stats(); s.ConfirmedTotal < 39 || s.InvalidTotal != 1 || s.SessionsTotal > 4 {
		t.Errorf("stats are %+v", s)
	}
	if n, _ := r.p.window.size(); n != 16 {
		t.Errorf("the window is %d, want 16", n)
	}
}

// TestPublisher_RejectedComesAgain: a nack delays one message and counts.
func TestPublisher_RejectedComesAgain(t *testing.T) {
	b := &broker{}
	var once sync.Once
	b.on = func(s *scripted, p Publication) error {
		v := Verdict{Tag: p.Tag, Outcome: Confirmed}
		once.Do(func() { v.Outcome = Rejected })
		s.say(v)
		return nil
	}
	r := newRig(t, b, Options{})
	r.append(2)
	r.untilEmpty()
	if s := r.p.Stats(); s.ConfirmedTotal != 2 || s.RejectedTotal != 1 {
		t.Errorf("stats are %+v", s)
	}
}

// TestPublisher_KeepsDialling proves P4; while the broker is away messages are
// ready, not leased.
func TestPublisher_KeepsDialling(t *testing.T) {
	b := &broker{}
	b.dial = func(n int) error {
		if n <= 50 {
			return errors.New("connection refused")
		}
		return nil
	}
	r := newRig(t, b, Options{RetryMax: 2 * time.Millisecond})
	r.until("an idle publisher", func(_ queue.Stats, p Stats) bool { return p.State == Idle })
	if b.dials != 0 {
		t.Errorf("%d dials with nothing to send", b.dials)
	}
	r.append(1)
	r.untilEmpty()
	if s := r.p.Stats(); s.SessionsTotal != 1 || !strings.Contains(s.LastError, "connection refused") {
		t.Errorf("stats are %+v", s)
	}
}

// TestPublisher_ConfirmTimeout proves P5.
func TestPublisher_ConfirmTimeout(t *testing.T) {
	b := &broker{}
	var once sync.Once
	b.on = func(s *scripted, p Publication) error {
		silent := false
		once.Do(func() { silent = true })
		if !silent {
			s.say(Verdict{Tag: p.Tag, Outcome: Confirmed})
		}
		return nil
	}
	r := newRig(t, b, Options{ConfirmTimeout: 20 * time.Millisecond})
	r.append(1)
	r.untilEmpty()
	if s := r.p.Stats(); s.SessionsTotal != 2 || !strings.Contains(s.LastError, "no verdict for") {
		t.Errorf("stats are %+v", s)
	}
}

// TestPublisher_TinyConfirmTimeout: a limit of a nanosecond is silly, and no more.
func TestPublisher_TinyConfirmTimeout(t *testing.T) {
	r := newRig(t, &broker{}, Options{ConfirmTimeout: 1})
	r.append(1)
	r.untilEmpty()
}

// TestPublisher_IdleSessionCloses: a session is not held without need.
func TestPublisher_IdleSessionCloses(t *testing.T) {
	r := newRig(t, &broker{}, Options{IdleTimeout: 5 * time.Millisecond})
	for n := range uint64(2) {
		r.append(1)
		r.until("an idle publisher", func(_ queue.Stats, p Stats) bool {
			return p.State == Idle && p.ConfirmedTotal == n+1
		})
	}
	if s := r.p.Stats(); s.SessionsTotal != 2 || s.LastError != "" {
		t.Errorf("stats are %+v", s)
	}
}

// TestPublisher_StopFinishesInFlight proves P6.
func TestPublisher_StopFinishesInFlight(t *testing.T) {
	b := &broker{}
	verdicts := make(chan func(), 10)
	b.on = func(s *scripted, p Publication) error {
		verdicts <- func() { s.say(Verdict{Tag: p.Tag, Outcome: Confirmed}) }
		return nil
	}
	r := newRig(t, b, Options{Window: 4})
	r.append(10)
	r.until("a full window", func(_ queue.Stats, p Stats) bool { return p.InFlight == 4 })
	r.stop()
	for range 4 {
		(<-verdicts)()
	}
	r.halt()
	if q, err := r.route.Stats(); err != nil || q.Ready != 6 || q.Leased != 0 {
		t.Errorf("after the stop: %+v, %v", q, err)
	}
}

// TestPublisher_StopTimeout: a silent broker does not hold up the stop, and
// nothing of what it did not confirm is lost.
func TestPublisher_StopTimeout(t *testing.T) {
	b := &broker{on: func(*scripted, Publication) error { return nil }}
	r := newRig(t, b, Options{Window: 4, StopTimeout: 5 * time.Millisecond})
	r.append(10)
	r.until("a full window", func(_ queue.Stats, p Stats) bool { return p.InFlight == 4 })
	r.halt()
	if q, err := r.route.Stats(); err != nil || q.Ready != 10 || q.Leased != 0 {
		t.Errorf("after the stop: %+v, %v", q, err)
	}
}

// TestOptions_Topic: a configured topic stands where a message has none of its own.
func TestOptions_Topic(t *testing.T) {
	o := Options{TopicPrefix: "v03", Topic: "all.of.it"}
	for _, c := range []struct {
		m    queue.Message
		want string
	}{
		{queue.Message{Words: []string{"a"}}, "all.of.it"},
		{queue.Message{HasKey: true}, "all.of.it"},
		{queue.Message{HasKey: true, Key: "own"}, "own"},
	} {
		if got := o.routingKey(&c.m); got != c.want {
			t.Errorf("routing key of %+v is %q, want %q", c.m, got, c.want)
		}
	}
}

// TestExchanges_Split: what names no exchange is spread over those of the route,
// and naming one of them is no wish of its own.
func TestExchanges_Split(t *testing.T) {
	e := exchanges{own: OwnExchanges("xs", 12), code: func(m *queue.Message) int { return int(m.Line) }}
	for line, want := range map[uint32]string{0: "xs00", 11: "xs11", 12: "xs00", 102: "xs06"} {
		if got := e.of(&queue.Message{Line: line}); got != want {
			t.Errorf("exchange of code %d is %s, want %s", line, got, want)
		}
	}
	if m := (queue.Message{Exchange: "xs03"}); e.of(&m) != "xs03" || e.named(&m) {
		t.Errorf("a message that names xs03 goes to %s, on its own wish: %t", e.of(&m), e.named(&m))
	}
	if got := OwnExchanges("xs", 0); len(got) != 1 || got[0] != "xs" {
		t.Errorf("without a split: %q", got)
	}
}

func TestRoutingKey(t *testing.T) {
	long := strings.Repeat("d", 120)
	for _, c := range []struct {
		prefix string
		m      queue.Message
		want   string
	}{
		{"v03", queue.Message{}, "v03"},
		{"v03", queue.Message{Words: []string{"20260101", "METEO", "obs"}}, "v03.20260101.METEO.obs"},
		{"v03", queue.Message{Words: []string{"a", "", "b", ".."}}, "v03.a..b..."},
		{"", queue.Message{Words: []string{"a", "b"}}, "a.b"},
		{"v03", queue.Message{Words: []string{long, long, "e"}}, "v03." + long + "." + long + ".e"},
		{"v03", queue.Message{Words: []string{long, long, "01234567890", "x"}}, "v03." + long + "." + long},
		{"v03", queue.Message{Words: []string{"a", "\xe9", "b"}}, "v03.a"},
		{"v03", queue.Message{Words: []string{"a"}, Key: "own", HasKey: true}, "own"},
		{"v03", queue.Message{HasKey: true}, ""},
	} {
		if got := RoutingKey(c.prefix, &c.m); got != c.want {
			t.Errorf("RoutingKey(%q, %q) = %q, want %q", c.prefix, c.m.Words, got, c.want)
		}
	}
}
