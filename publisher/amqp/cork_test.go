package amqp

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"spoolfs/publisher"
)

// recorder is a connection of which only Write is used.
type recorder struct {
	net.Conn
	writes []string
	err    error
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	r.writes = append(r.writes, string(b))
	return len(b), nil
}

// TestCork: what is written comes out in its order and in few pieces, and an
// error of what was kept is told.
func TestCork(t *testing.T) {
	r := &recorder{}
	c := &cork{Conn: r}
	write := func(text string) error {
		_, err := c.Write([]byte(text))
		return err
	}
	write("a")
	c.hold()
	write("b")
	write("c")
	if got := strings.Join(r.writes, ","); got != "a" {
		t.Errorf("while held: wrote %q", got)
	}
	if err := c.release(); err != nil {
		t.Error(err)
	}
	write("d")
	if got := strings.Join(r.writes, ","); got != "a,bc,d" {
		t.Errorf("wrote %q", got)
	}
	c.hold()
	long := strings.Repeat("e", corkSize-1)
	write(long)
	write("f")
	if len(r.writes) != 4 || r.writes[3] != long+"f" {
		t.Errorf("%d writes, want 4: a full cork lets go", len(r.writes))
	}
	write("g")
	r.err = errors.New("broken")
	if err := c.release(); !errors.Is(err, r.err) {
		t.Errorf("release: got %v", err)
	}
}

// A message that is published and not flushed is sent by Close at the latest,
// and by Flush at once.
func TestSession_Flush(t *testing.T) {
	q := declareQueue(t, nil)
	s := dial(t, Options{})
	for tag := range uint64(3) {
		if err := s.Publish(publication(q.Exchange, tag)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case v := <-s.Verdicts():
		t.Errorf("before the Flush: got %+v", v)
	case <-time.After(20 * time.Millisecond):
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	for tag := range uint64(3) {
		if v := nextVerdict(t, s); v.Tag != tag || v.Outcome != publisher.Confirmed {
			t.Errorf("got %+v", v)
		}
	}
	if err := s.Publish(publication(q.Exchange, 3)); err != nil {
		t.Fatal(err)
	}
	closeSession(t, s)
	wait(t, "the last message", func() bool {
		depth, err := q.Depth(t.Context())
		return err == nil && depth == 4
	})
}
