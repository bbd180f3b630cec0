package amqp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
	"spoolfs/publisher"
	"spoolfs/queue"
)

// line is all from a queue on disk to a broker.
type line struct {
	t        testing.TB
	queue    *queue.Queue
	route    *queue.Route
	brokers  *Brokers
	p        *publisher.Publisher
	stop     context.CancelFunc
	done     chan error
	appended []queue.ID
}

// lineWindow is the window of lines that do not need another.
const lineWindow = 64

// newLine makes a line and does not start it. Waits are short.
func newLine(tb testing.TB, opts publisher.Options, brokers ...Options) *line {
	tb.Helper()
	checkLeaks(tb)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	q, _, err := queue.Open(tb.TempDir(), queue.Options{Logger: log})
	if err != nil {
		tb.Fatal(err)
	}
	route, err := q.Route("default")
	if err != nil {
		tb.Fatal(err)
	}
	l := &line{t: tb, queue: q, route: route}
	for i := range brokers {
		if brokers[i].Exchanges == nil && opts.Exchange != "" {
			brokers[i].Exchanges = []string{opts.Exchange}
		}
	}
	l.brokers = NewBrokers(brokers...)
	opts.Route, opts.Dial, opts.Logger = route, l.brokers.Dial, log
	if opts.Window == 0 {
		opts.Window = lineWindow
	}
	if opts.RetryMin == 0 {
		opts.RetryMin, opts.RetryMax = 5*time.Millisecond, 100*time.Millisecond
	}
	if opts.LazyWait == 0 {
		opts.LazyWait = 200 * time.Millisecond
	}
	if l.p, err = publisher.New(opts); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		l.halt()
		if err := q.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// startLine makes a line and starts it.
func startLine(tb testing.TB, opts publisher.Options, brokers ...Options) *line {
	tb.Helper()
	l := newLine(tb, opts, brokers...)
	l.start()
	return l
}

func (l *line) start() {
	ctx, stop := context.WithCancel(context.Background())
	l.stop, l.done = stop, make(chan error, 1)
	go func() { l.done <- l.p.Run(ctx) }()
}

// halt stops the publisher, softly.
func (l *line) halt() {
	l.t.Helper()
	if l.done == nil {
		return
	}
	l.stop()
	if err := <-l.done; err != nil {
		l.t.Error(err)
	}
	l.done = nil
}

// append stores n messages, and returns their IDs. edit may be nil.
func (l *line) append(n int, edit func(int, *queue.Message)) []queue.ID {
	l.t.Helper()
	f := queue.NewFileID()
	ms := make([]queue.Message, n)
	ids := make([]queue.ID, n)
	for i := range ms {
		ids[i] = f.MessageID(uint32(i + 1))
		ms[i] = queue.Message{
			ID: ids[i], Line: uint32(i + 1), Words: []string{"a"}, Ingested: time.Now(),
			Body: fmt.Appendf(nil, `{"n": %d}`, i),
		}
		if edit != nil {
			edit(i, &ms[i])
		}
	}
	if err := l.route.Append(ms); err != nil {
		l.t.Fatal(err)
	}
	l.appended = append(l.appended, ids...)
	return ids
}

// until waits for a condition on the stats of queue and publisher.
func (l *line) until(what string, cond func(queue.Stats, publisher.Stats) bool) {
	l.t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		q, err := l.route.Stats()
		if err != nil {
			l.t.Fatal(err)
		}
		p := l.p.Stats()
		if cond(q, p) {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("never saw %s: %+v, %+v", what, q, p)
		}
	}
}

func (l *line) untilConfirmed(n uint64) {
	l.t.Helper()
	l.until(fmt.Sprintf("%d confirms", n), func(_ queue.Stats, p publisher.Stats) bool { return p.ConfirmedTotal >= n })
}

func (l *line) untilEmpty() {
	l.t.Helper()
	l.until("an empty queue", func(q queue.Stats, p publisher.Stats) bool {
		return q.Ready+q.Leased+q.Delayed == 0 && p.InFlight == 0
	})
}

// checkArrived checks that what was appended has arrived, all of it, in order,
// and that repeats have the same id and are fewer than the window for each
// failure.
func (l *line) checkArrived(q rabbit.Queue, failures int) {
	l.t.Helper()
	got := drain(l.t, q)
	seen := make(map[queue.ID]bool)
	next, repeats, late := 0, 0, 0
	for _, d := range got {
		id := queue.ID(d.MessageID)
		if seen[id] {
			repeats++
			continue
		}
		seen[id] = true
		if next < len(l.appended) && l.appended[next] == id {
			next++
		} else {
			late++
		}
	}
	if len(seen) != len(l.appended) {
		l.t.Errorf("%d of %d messages arrived", len(seen), len(l.appended))
	}
	if late > 0 {
		l.t.Errorf("%d messages are out of order", late)
	}
	if repeats > failures*lineWindow {
		l.t.Errorf("%d repeats after %d failures, want at most the window of %d for each", repeats, failures, lineWindow)
	}
	l.t.Logf("%d messages, %d repeats", len(seen), repeats)
}
