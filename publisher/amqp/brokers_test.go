package amqp

import (
	"testing"
	"time"
)

// TestBrokers_NextIfHung: a broker that is there and of no use is not the first to
// be tried again, though it takes connections; one whose connection was lost, or
// that has done all it should, is.
func TestBrokers_NextIfHung(t *testing.T) {
	q := declareQueue(t, nil)
	one, other := newRelay(t), newRelay(t)
	b := NewBrokers(
		Options{URL: one.URL(), CloseTimeout: 100 * time.Millisecond},
		Options{URL: other.URL(), CloseTimeout: 100 * time.Millisecond})
	t.Cleanup(func() { ctl(t, "set_vm_memory_high_watermark", "0.4") })
	for _, step := range []struct {
		what string
		then func(*Session)
		want string // the address of the next session
	}{
		{"all confirmed", func(s *Session) { nextVerdict(t, s); s.Close() }, one.Addr()},
		{"connection lost", func(s *Session) { one.Cut(); remaining(t, s) }, one.Addr()},
		{"not confirmed", func(s *Session) {
			s.Close()
			one.Down.Unlock()
		}, other.Addr()},
		{"blocked", func(s *Session) {
			wait(t, "the alarm", func() bool { return s.Blocked() != "" })
			s.Close()
			ctl(t, "set_vm_memory_high_watermark", "0.4")
		}, one.Addr()},
	} {
		s, err := b.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch step.what {
		case "not confirmed":
			one.Down.Lock()
		case "blocked":
			ctl(t, "set_vm_memory_high_watermark", "0.00001")
		}
		publish(t, s.(*Session), publication(q.Exchange, 1))
		step.then(s.(*Session))
		next, err := b.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		next.Close()
		if got := b.Stats().Address; got != step.want {
			t.Errorf("%s: the next session is with %s, want %s", step.what, got, step.want)
		}
	}
}
