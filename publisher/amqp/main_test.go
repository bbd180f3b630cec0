package amqp

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"spoolfs/integration/rabbit"
	"spoolfs/publisher"
	"spoolfs/queue"
)

// node is the broker of all tests. Those that stop it start it again.
var node *rabbit.Node

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	node, err = rabbit.Start(context.Background(), rabbit.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := node.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// checkLeaks fails the test if a goroutine that it started is there at its end.
func checkLeaks(tb testing.TB) {
	tb.Helper()
	before := goleak.IgnoreCurrent()
	// Of the node, which some tests start again.
	keeper := goleak.IgnoreAnyFunction("spoolfs/integration/subprocess.Start.func1")
	tb.Cleanup(func() { goleak.VerifyNone(tb, before, keeper) })
}

func dial(tb testing.TB, opts Options) *Session {
	tb.Helper()
	checkLeaks(tb)
	if opts.URL == "" {
		opts.URL = node.URL()
	}
	s, err := Dial(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

func closeSession(tb testing.TB, s *Session) {
	tb.Helper()
	for range 2 {
		if err := s.Close(); err != nil {
			tb.Fatalf("Close: %v", err)
		}
	}
	if err := s.Err(); err != nil {
		tb.Fatalf("Err after Close: %v", err)
	}
}

var names atomic.Int64

// newName is a name that no other test uses, nor a repetition of this one.
func newName(tb testing.TB) string {
	return fmt.Sprintf("%s-%d", tb.Name(), names.Add(1))
}

// declareQueue makes an exchange and a queue that gets everything from it.
func declareQueue(tb testing.TB, arguments map[string]any) rabbit.Queue {
	tb.Helper()
	name := newName(tb)
	q := rabbit.Queue{URL: node.URL(), Name: name, Exchange: name, Arguments: arguments}
	if err := q.Declare(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return q
}

func consume(tb testing.TB, q rabbit.Queue, count int) []rabbit.Delivery {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	got, err := q.Consume(ctx, count)
	if err != nil {
		tb.Fatalf("after %d of %d messages: %v", len(got), count, err)
	}
	return got
}

func drain(tb testing.TB, q rabbit.Queue) []rabbit.Delivery {
	tb.Helper()
	got, err := q.Drain(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// publication makes message number tag.
func publication(exchange string, tag uint64) publisher.Publication {
	return publisher.Publication{
		Tag:      tag,
		Exchange: exchange,
		Key:      "v03.post.a",
		Message: &queue.Message{
			ID:          queue.ID(fmt.Sprintf("id-%d", tag)),
			ContentType: "application/json",
			Body:        fmt.Appendf(nil, `{"n": %d}`, tag),
		},
	}
}

func publish(tb testing.TB, s *Session, p publisher.Publication) {
	tb.Helper()
	if err := send(s, p); err != nil {
		tb.Fatal(err)
	}
}

// send publishes at once.
func send(s *Session, p publisher.Publication) error {
	if err := s.Publish(p); err != nil {
		return err
	}
	return s.Flush()
}

func nextVerdict(tb testing.TB, s *Session) publisher.Verdict {
	tb.Helper()
	select {
	case v, ok := <-s.Verdicts():
		if !ok {
			tb.Fatalf("the session ended: %v", s.Err())
		}
		return v
	case <-time.After(time.Minute):
		tb.Fatal("no verdict within a minute")
	}
	panic("unreachable")
}

// remaining reads verdicts until the session ends.
func remaining(tb testing.TB, s *Session) []publisher.Verdict {
	tb.Helper()
	timeout := time.After(time.Minute)
	var got []publisher.Verdict
	for {
		select {
		case v, ok := <-s.Verdicts():
			if !ok {
				return got
			}
			got = append(got, v)
		case <-timeout:
			tb.Fatal("the session has not ended within a minute")
		}
	}
}

// publishAll publishes count messages with at most window in flight and
// returns their verdicts.
func publishAll(tb testing.TB, s *Session, count, window int, make func(tag uint64) publisher.Publication) []publisher.Verdict {
	tb.Helper()
	var got []publisher.Verdict
	for sent := range count {
		if sent-len(got) == window {
			got = append(got, nextVerdict(tb, s))
		}
		publish(tb, s, make(uint64(sent+1)))
	}
	for len(got) < count {
		got = append(got, nextVerdict(tb, s))
	}
	return got
}

// wait waits for a condition.
func wait(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(time.Minute); !condition(); <-poll.C {
		if time.Now().After(deadline) {
			tb.Fatalf("waited a minute for %s", what)
		}
	}
}

func ctl(tb testing.TB, args ...string) {
	tb.Helper()
	// Not the test's context, which has ended when the cleanup runs.
	if _, err := node.Ctl(context.Background(), args...); err != nil {
		tb.Fatal(err)
	}
}

// urlOf is the node's URL for another user.
func urlOf(user, password string) string {
	u, err := url.Parse(node.URL())
	if err != nil {
		panic(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}
