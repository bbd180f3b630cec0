package amqp

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/publisher"
)

func TestDial_DeclaresExchanges(t *testing.T) {
	name := newName(t)
	closeSession(t, dial(t, Options{Exchanges: []string{"", name, "amq.topic"}}))
	withChannel(t, func(ch *amqp091.Channel) {
		if err := declareTopic(ch, name); err != nil {
			t.Error(err)
		}
	})
}

func withChannel(tb testing.TB, f func(*amqp091.Channel)) {
	tb.Helper()
	conn, err := amqp091.Dial(node.URL())
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		tb.Fatal(err)
	}
	f(ch)
}

func TestDial_ExchangeIsOfAnotherType(t *testing.T) {
	checkLeaks(t)
	name := newName(t)
	withChannel(t, func(ch *amqp091.Channel) {
		if err := ch.ExchangeDeclare(name, "fanout", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	})
	_, err := Dial(t.Context(), Options{URL: node.URL(), Exchanges: []string{name}})
	wantErr(t, err, publisher.Lazy, "406")
	wantCause(t, err, publisher.ExchangeDiffers)
}

// A user who may write, and no more.
func TestDial_WithoutConfigurePermission(t *testing.T) {
	q := declareQueue(t, nil)
	user := newName(t)
	ctl(t, "add_user", user, "secret")
	ctl(t, "set_permissions", user, "^$", q.Exchange, "^$")

	s := dial(t, Options{URL: urlOf(user, "secret"), Exchanges: []string{q.Exchange, q.Exchange}})
	publish(t, s, publication(q.Exchange, 1))
	if got := nextVerdict(t, s); got.Outcome != publisher.Confirmed {
		t.Errorf("got %+v", got)
	}
	publish(t, s, publication("amq.topic", 2))
	remaining(t, s)
	wantErr(t, s.Err(), publisher.Lazy, "403")
	wantCause(t, s.Err(), publisher.ExchangeRefused)

	_, err := Dial(t.Context(), Options{URL: urlOf(user, "secret"), Exchanges: []string{q.Exchange, newName(t)}})
	wantErr(t, err, publisher.Lazy, "404")
	wantCause(t, err, publisher.ExchangeMissing)
}

// Guarantee 7, and that a refusal is known as one, at once.
func TestDial_Refused(t *testing.T) {
	checkLeaks(t)
	for name, c := range map[string]struct {
		url   string
		text  string
		cause publisher.Cause
	}{
		"Password": {urlOf("guest", "s3cret"), "403", publisher.LoginRefused},
		"User":     {urlOf("nobody", "s3cret"), "403", publisher.LoginRefused},
		"Vhost":    {node.URL() + "nowhere", "530", publisher.VhostRefused},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Dial(t.Context(), Options{URL: c.url, DialTimeout: time.Minute})
			wantErr(t, err, publisher.Lazy, c.text)
			wantCause(t, err, c.cause)
			wantNoSecret(t, err)
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func wantNoSecret(tb testing.TB, err error) {
	tb.Helper()
	if strings.Contains(err.Error(), "s3") || strings.Contains(err.Error(), "cret") {
		tb.Errorf("the password is in %q", err)
	}
}

func TestDial_UnreadableURL(t *testing.T) {
	for _, url := range []string{
		"amqp://guest:s3#cret@127.0.0.1/",
		"amqp://guest:s3?cret@127.0.0.1/",
		"amqp://guest:s3%cret@127.0.0.1/",
		"amqp://guest:s3 cret@127.0.0.1/",
		"http://guest:s3cret@127.0.0.1/",
	} {
		_, err := Dial(t.Context(), Options{URL: url})
		if err == nil {
			t.Fatalf("%s: got no error", url)
		}
		wantNoSecret(t, err)
	}
}

func TestDial_NobodyListens(t *testing.T) {
	checkLeaks(t)
	l := listen(t)
	l.Close()
	_, err := Dial(t.Context(), Options{URL: "amqp://guest:s3cret@" + l.Addr().String()})
	wantErr(t, err, publisher.Retriable, l.Addr().String())
	wantCause(t, err, publisher.Unreachable)
	wantNoSecret(t, err)
}

func listen(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	return l
}

// A peer that hangs up is no refusal, whatever the library makes of it. The
// connection is cut at one point of the handshake after the other.
func TestDial_PeerHangsUp(t *testing.T) {
	checkLeaks(t)
	q := declareQueue(t, nil)
	r := newRelay(t)
	var err error
	for bytes := 0; bytes == 0 || err != nil; bytes += 11 {
		r.Allow(-1, bytes)
		var s *Session
		s, err = Dial(t.Context(), Options{URL: r.URL(), Exchanges: []string{q.Exchange}})
		if err == nil {
			s.Close()
			t.Logf("a handshake takes %d bytes", bytes)
		} else if class := faultIn(err).Class; class != publisher.Retriable {
			t.Errorf("cut after %d bytes: got class %d for %v", bytes, class, err)
		}
	}
}

func TestDial_BlackHole(t *testing.T) {
	t.Run("Cancelled", func(t *testing.T) {
		checkLeaks(t)
		l := listen(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			conn, err := l.Accept()
			cancel()
			if err == nil {
				defer conn.Close()
				conn.Read(make([]byte, 100)) // its greeting
				conn.Read(make([]byte, 100)) // its end
			}
		}()
		start := time.Now()
		_, err := Dial(ctx, Options{URL: "amqp://" + l.Addr().String(), DialTimeout: time.Minute})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v", err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("took %v", took)
		}
	})
	t.Run("Timeout", func(t *testing.T) {
		checkLeaks(t)
		l := listen(t) // the kernel accepts, nobody answers
		_, err := Dial(t.Context(), Options{URL: "amqp://" + l.Addr().String(), DialTimeout: 100 * time.Millisecond})
		wantErr(t, err, publisher.Retriable, "no answer within 100ms")
		wantCause(t, err, publisher.Silent) // unlike a broker that is away
	})
}

// The end of the context has no meaning for a session.
func TestDial_ContextEndsLater(t *testing.T) {
	q := declareQueue(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	checkLeaks(t)
	s, err := Dial(ctx, Options{URL: node.URL()})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	publish(t, s, publication(q.Exchange, 1))
	if got := nextVerdict(t, s); got.Outcome != publisher.Confirmed {
		t.Errorf("got %+v", got)
	}
	closeSession(t, s)
}

// What an operator sees of the connection.
func TestDial_ClientProperties(t *testing.T) {
	dial(t, Options{Name: "a-host", Version: "1.2.3"})
	wait(t, "the connection in the broker's list", func() bool {
		out, err := node.Ctl(t.Context(), "list_connections", "client_properties")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(out, `{"connection_name","a-host"}`) &&
			strings.Contains(out, `{"product","spoolfs"}`) &&
			strings.Contains(out, `{"version","1.2.3"}`)
	})
}
