package amqp

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/integration/rabbit"
	"spoolfs/publisher"
	"spoolfs/queue"
)

// TestLine_QueueIsFull: a queue with a limit and reject-publish makes no more
// than a window of messages delayed; when there is room again everything is
// delivered, and only what was refused is out of order (P7, B9).
func TestLine_QueueIsFull(t *testing.T) {
	const messages, limit = 1000, 100
	q := declareQueue(t, map[string]any{"x-max-length": int32(limit), "x-overflow": "reject-publish"})
	l := startLine(t, publisher.Options{Exchange: q.Exchange}, Options{URL: node.URL()})
	l.append(messages, nil)
	l.until("many refusals", func(s queue.Stats, p publisher.Stats) bool {
		if s.Delayed+s.Leased > lineWindow {
			t.Fatalf("%d delayed and %d leased, want at most the window of %d", s.Delayed, s.Leased, lineWindow)
		}
		return p.RejectedTotal > 2*lineWindow && p.State == publisher.Slowed && p.LastCause == publisher.Rejecting
	})
	got := consume(t, q, messages) // so fast that it is not full again
	l.untilEmpty()
	if n := len(idsOf(got)); n != messages || len(drain(t, q)) > 0 {
		t.Errorf("received %d messages, want %d without repeats", n, messages)
	}
	last, late := -1, 0
	for _, d := range got {
		var n int
		if _, err := fmt.Sscanf(string(d.Body), `{"n": %d}`, &n); err != nil {
			t.Fatal(err)
		}
		if n < last {
			late++
		}
		last = max(last, n)
	}
	if late > lineWindow {
		t.Errorf("%d messages out of order, want at most a window of %d", late, lineWindow)
	}
	t.Logf("%d late, %+v", late, l.p.Stats())
}

// TestLine_MemoryAlarm: a blocked connection is a state of its own, costs no
// repeat and no delay, however long it lasts; and when it lasts too long the
// connection is replaced (P5, B3).
func TestLine_MemoryAlarm(t *testing.T) {
	t.Cleanup(func() { ctl(t, "set_vm_memory_high_watermark", "0.4") })
	for name, opts := range map[string]publisher.Options{
		"Cleared":  {ConfirmTimeout: 2 * time.Second},
		"Deadline": {BlockedTimeout: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			q := declareQueue(t, nil)
			opts.Exchange = q.Exchange
			l := startLine(t, opts, Options{URL: node.URL()})
			l.append(10, nil)
			l.untilEmpty()
			ctl(t, "set_vm_memory_high_watermark", "0.00001")
			l.append(500, nil)
			sessions := l.p.Stats().SessionsTotal
			blocked := time.Now()
			if name == "Deadline" {
				l.until("another session", func(_ queue.Stats, p publisher.Stats) bool {
					return p.SessionsTotal > sessions && p.LastCause == publisher.AlarmedBroker
				})
			} else {
				l.until("blocked for longer than a confirm may take", func(_ queue.Stats, p publisher.Stats) bool {
					if p.State != publisher.Blocked {
						blocked = time.Now()
					}
					return time.Since(blocked) > opts.ConfirmTimeout+time.Second
				})
			}
			ctl(t, "set_vm_memory_high_watermark", "0.4")
			l.untilEmpty()
			failures := int(l.p.Stats().FailuresTotal)
			if name == "Cleared" && failures > 0 {
				t.Errorf("the session was replaced: %+v", l.p.Stats())
			}
			l.checkArrived(q, failures)
		})
	}
}

// TestLine_ExchangeDeleted: an exchange that goes away while we publish is made
// again with the next session, as it is ours; nothing that the broker confirmed
// without a queue is our loss (B5).
func TestLine_ExchangeDeleted(t *testing.T) {
	q := declareQueue(t, nil)
	l := startLine(t, publisher.Options{Exchange: q.Exchange, Returned: publisher.ReturnedRetry, LazyWait: 50 * time.Millisecond},
		Options{URL: node.URL()})
	l.append(5000, nil)
	l.untilConfirmed(1000)
	withChannel(t, func(ch *amqp091.Channel) {
		if err := ch.ExchangeDelete(q.Exchange, false, false); err != nil {
			t.Fatal(err)
		}
	})
	l.append(500, nil)
	l.until("aware of it", func(_ queue.Stats, p publisher.Stats) bool { return p.LastCause == publisher.ExchangeMissing })
	if err := q.Declare(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.untilEmpty()
	got := drain(t, q)
	if n := len(idsOf(got)); n != 5500 {
		t.Errorf("%d messages arrived, want 5500", n)
	}
	if repeats := len(got) - 5500; repeats > int(l.p.Stats().FailuresTotal)*lineWindow {
		t.Errorf("%d repeats", repeats)
	}
	t.Logf("%+v", l.p.Stats())
}

// newUser makes a user who may do what the patterns say.
func newUser(t *testing.T, configure, write string) string {
	t.Helper()
	user := strings.ReplaceAll(newName(t), "/", "-")
	ctl(t, "add_user", user, "s3cret")
	ctl(t, "set_permissions", user, configure, write, "^$")
	return user
}

// TestLine_PermissionWithdrawn: the route waits, tries now and then with a
// single message, and goes on when the permission is there again (B6).
func TestLine_PermissionWithdrawn(t *testing.T) {
	q := declareQueue(t, nil)
	user := newUser(t, ".*", ".*")
	l := startLine(t, publisher.Options{Exchange: q.Exchange}, Options{URL: urlOf(user, "s3cret")})
	l.append(3000, nil)
	l.untilConfirmed(500)
	ctl(t, "set_permissions", user, "^$", "^$", "^$")
	ctl(t, "close_all_user_connections", user, "test") // it remembers permissions
	l.append(3000, nil)
	l.until("refused twice", func(s queue.Stats, p publisher.Stats) bool {
		return p.LastCause == publisher.ExchangeRefused && p.FailuresTotal >= 3 && s.Delayed == 0
	})
	s := l.p.Stats()
	if !strings.Contains(s.LastError, q.Exchange) || !strings.Contains(s.LastError, user) || strings.Contains(s.LastError, "s3cret") {
		t.Errorf("the error is %q", s.LastError)
	}
	ctl(t, "set_permissions", user, ".*", ".*", "^$")
	l.untilEmpty()
	l.checkArrived(q, 2) // what came before the first probe
}

// TestLine_RecordNamesExchange: records that name a missing exchange, one that
// the user may not write to, or one that is not allowed wait themselves, and
// nobody else does (P8, B5).
func TestLine_RecordNamesExchange(t *testing.T) {
	q := declareQueue(t, nil)
	forbidden := declareQueue(t, nil)
	other := declareQueue(t, nil)
	missing := newName(t)
	user := newUser(t, "^$", "^("+q.Exchange+"|"+other.Exchange+"|"+missing+")$")
	allowed := []string{missing, forbidden.Exchange, other.Exchange}
	l := startLine(t, publisher.Options{Exchange: q.Exchange, Allowed: allowed, LazyWait: time.Hour},
		Options{URL: urlOf(user, "s3cret")})
	names := []string{"", missing, "", forbidden.Exchange, other.Exchange, "not-allowed", q.Exchange, ""}
	l.append(800, func(i int, m *queue.Message) { m.Exchange = names[i%len(names)] })
	l.until("all but those settled", func(s queue.Stats, p publisher.Stats) bool {
		return s.Ready+s.Leased == 0 && s.Delayed == 300 && p.ConfirmedTotal == 500
	})
	s := l.p.Stats()
	if s.SessionsTotal > 4 || s.State == publisher.Waiting {
		t.Errorf("stats are %+v", s)
	}
	if n := len(idsOf(drain(t, q))); n != 400 {
		t.Errorf("%d messages in the route's exchange, want 400", n)
	}
	if n := len(idsOf(drain(t, other))); n != 100 {
		t.Errorf("%d messages in the other exchange, want 100", n)
	}
	if n := len(drain(t, forbidden)); n != 0 {
		t.Errorf("%d messages in the forbidden exchange", n)
	}
}

// TestLine_TopicRefused: a routing key that the user may not use delays its
// message and no other.
func TestLine_TopicRefused(t *testing.T) {
	q := declareQueue(t, nil)
	user := newUser(t, "^$", ".*")
	ctl(t, "set_topic_permissions", user, q.Exchange, "^v03\\.a", ".*")
	l := startLine(t, publisher.Options{Exchange: q.Exchange, TopicPrefix: "v03", LazyWait: time.Hour},
		Options{URL: urlOf(user, "s3cret")})
	l.append(300, func(i int, m *queue.Message) {
		if i == 150 {
			m.Words = []string{"forbidden"}
		}
	})
	l.until("one delayed", func(s queue.Stats, p publisher.Stats) bool {
		return s.Ready+s.Leased == 0 && s.Delayed == 1 && p.ConfirmedTotal == 299
	})
	if n := len(idsOf(drain(t, q))); n != 299 {
		t.Errorf("%d messages arrived, want 299", n)
	}
}

// TestLine_TooLarge: a message over the broker's limit is set aside, the others
// are delivered (P3, B10).
func TestLine_TooLarge(t *testing.T) {
	q := declareQueue(t, nil)
	setMaxMessageSize(t, "1000")
	t.Cleanup(func() { setMaxMessageSize(t, "134217728") })
	l := startLine(t, publisher.Options{Exchange: q.Exchange}, Options{URL: node.URL()})
	l.append(500, func(i int, m *queue.Message) {
		if i%200 == 150 {
			m.Body = make([]byte, 1001)
		}
	})
	l.untilEmpty()
	if n := len(idsOf(drain(t, q))); n != 498 {
		t.Errorf("%d messages arrived, want 498", n)
	}
	dead := 0
	for m, err := range l.route.Dead() {
		dead++
		if err != nil || !strings.HasPrefix(m.Reason, "refused-by-broker: ") || !strings.Contains(m.Reason, "406") || len(m.Body) != 1001 {
			t.Errorf("dead letter %v, %q", err, m.Reason)
		}
	}
	if dead != 2 {
		t.Errorf("%d dead letters, want 2", dead)
	}
}

// TestLine_Failover: of two brokers one is dead; when the other dies, too, and
// comes back, it goes on. Neither order costs a message.
func TestLine_Failover(t *testing.T) {
	q := declareQueue(t, nil)
	gone := listen(t)
	gone.Close()
	dead := Options{URL: "amqp://guest:guest@" + gone.Addr().String() + "/"}
	r := newRelay(t)
	alive := Options{URL: r.URL()}
	for name, list := range map[string][]Options{"DeadFirst": {dead, alive}, "DeadLast": {alive, dead}} {
		t.Run(name, func(t *testing.T) {
			l := startLine(t, publisher.Options{Exchange: q.Exchange}, list...)
			l.append(2000, nil)
			l.untilConfirmed(500)
			r.Cut()
			l.untilEmpty()
			if s := l.p.Stats(); s.SessionsTotal < 2 || s.FailuresTotal != s.SessionsTotal-1 {
				t.Errorf("stats are %+v: the dead broker is not to cost an attempt", s)
			}
			if got, want := l.brokers.Stats().Address, r.Addr(); got != want {
				t.Errorf("connected to %s, want %s", got, want)
			}
			l.checkArrived(q, 1)
		})
	}
}

// TestLine_CutAtEachStep: the connection is cut after each number of bytes that
// a handshake and a publish send, and after some of those that they receive:
// nothing is lost, and repeats have their ids (P1, P2, B1).
func TestLine_CutAtEachStep(t *testing.T) {
	q := declareQueue(t, nil)
	for _, c := range []struct {
		name       string
		first, end int
		step       int
		allow      func(r *rabbit.Relay, n int)
	}{
		{"Up", 1, 1100, 7, func(r *rabbit.Relay, n int) { r.Allow(n, -1) }},
		{"Down", 1, 700, 7, func(r *rabbit.Relay, n int) { r.Allow(-1, n) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRelay(t)
			sent, cuts := 0, 0
			l := startLine(t, publisher.Options{
				Exchange: q.Exchange, RetryMin: time.Millisecond, RetryMax: 4 * time.Millisecond,
			}, Options{URL: r.URL()})
			for n := c.first; n < c.end; n += c.step {
				c.allow(r, n)
				r.Cut()
				before := r.Accepted()
				l.append(2, nil)
				sent += 2
				l.until("a cut connection, or the messages sent", func(s queue.Stats, p publisher.Stats) bool {
					return r.Accepted() > before+1 || s.Ready+s.Leased == 0
				})
				cuts++
			}
			r.Allow(-1, -1)
			r.Cut()
			l.untilEmpty()
			l.checkArrived(q, cuts)
		})
	}
}

// TestLine_BlackHole: a network that swallows everything is noticed within two
// heartbeats and a bit, with the default of 10 s (SPOOLFS_CHAOS) within 40 s (B2).
func TestLine_BlackHole(t *testing.T) {
	heartbeat := 2 * time.Second
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		heartbeat = 10 * time.Second
	}
	q := declareQueue(t, nil)
	r := newRelay(t)
	l := startLine(t, publisher.Options{Exchange: q.Exchange}, Options{URL: r.URL(), Heartbeat: heartbeat})
	l.append(2000, nil)
	l.untilConfirmed(100)
	func() {
		r.Up.Lock()
		r.Down.Lock()
		defer r.Up.Unlock()
		defer r.Down.Unlock()
		start := time.Now()
		l.append(100, nil)
		l.until("aware of it", func(_ queue.Stats, p publisher.Stats) bool { return p.FailuresTotal > 0 })
		took := time.Since(start)
		t.Logf("noticed after %v", took)
		if took > 40*time.Second {
			t.Errorf("noticed after %v, want within 40s", took)
		}
	}()
	l.untilEmpty()
	l.checkArrived(q, int(l.p.Stats().FailuresTotal))
}

// TestLine_CleanStop: a stop with a healthy broker in the midst of the traffic
// repeats nothing, again and again (P6, D14).
func TestLine_CleanStop(t *testing.T) {
	q := declareQueue(t, nil)
	l := newLine(t, publisher.Options{Exchange: q.Exchange}, Options{URL: node.URL()})
	l.append(5000, nil)
	for round := range uint64(8) {
		l.start()
		l.untilConfirmed(round*500 + 100)
		l.halt()
		if s, err := l.route.Stats(); err != nil || s.Leased != 0 {
			t.Fatalf("after a stop: %+v, %v", s, err)
		}
	}
	l.start()
	l.untilEmpty()
	l.checkArrived(q, 0)
}

// TestLine_LoginChanges: a password that changes at the broker and in its file
// needs no restart (B13).
func TestLine_LoginChanges(t *testing.T) {
	q := declareQueue(t, nil)
	user := newUser(t, ".*", ".*")
	u, err := url.Parse(node.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = nil
	password := make(chan string, 1)
	password <- "s3cret"
	find := func() (Credentials, error) {
		p := <-password
		password <- p
		return Credentials{User: user, Password: p}, nil
	}
	l := startLine(t, publisher.Options{Exchange: q.Exchange}, Options{URL: u.String(), Credentials: find})
	l.append(100, nil)
	l.untilEmpty()
	ctl(t, "change_password", user, "another")
	ctl(t, "close_all_user_connections", user, "test")
	l.append(100, nil)
	l.until("refused", func(_ queue.Stats, p publisher.Stats) bool { return p.LastCause == publisher.LoginRefused })
	<-password
	password <- "another"
	l.untilEmpty()
	l.checkArrived(q, 1)
}
