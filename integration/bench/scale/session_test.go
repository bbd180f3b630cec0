package scale

import (
	"errors"
	"time"

	"spoolfs/publisher"
)

// session is a connection to the model of a broker, whose mutex guards it.
type session struct {
	broker   *broker
	node     *node
	verdicts chan publisher.Verdict
	network  []item // published, and not taken by the broker
	taken    int    // by the broker, and not confirmed
	closed   bool
	err      error
}

var _ publisher.Session = (*session)(nil)

// item is a message on its way.
type item struct {
	session *session
	tag     uint64
	number  int // of its node, from 1 on
	at      time.Time
}

func (s *session) Publish(p publisher.Publication) error {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	if s.closed {
		return errors.New("the connection has ended")
	}
	s.network = append(s.network, item{s, p.Tag, int(p.Message.Line), time.Now()})
	s.broker.unconfirmed++
	return nil
}

func (s *session) Flush() error                       { return nil }
func (s *session) Verdicts() <-chan publisher.Verdict { return s.verdicts }
func (s *session) Blocked() string                    { return "" }

func (s *session) Err() error {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	return s.err
}

func (s *session) Close() error {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	s.endLocked(nil)
	return nil
}

// endLocked ends the session. What the broker has taken it goes on to work at.
func (s *session) endLocked(err error) {
	if s.closed {
		return
	}
	s.closed, s.err = true, err
	close(s.verdicts)
	s.broker.unconfirmed -= len(s.network) + s.taken
	s.network = nil
	delete(s.broker.sessions, s)
}
