package amqp

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"spoolfs/publisher"
)

// lastWords is how long the reader has for what the broker said before it
// closed the connection. It ends by itself then; this is for a peer that does
// not.
const lastWords = time.Second

var _ publisher.Session = (*Session)(nil)

// Session is a connection on which messages are published. Dial makes one.
type Session struct {
	address      string
	vhost        string
	closeTimeout time.Duration
	frameSize    int

	wire *wire
	cork *cork
	conn *amqp091.Connection
	ch   *amqp091.Channel

	inflight *inflight
	verdicts chan publisher.Verdict
	ended    <-chan *amqp091.Error // why the channel ended
	pump     pump

	blocked atomic.Pointer[string]

	// hung is set at the end if the broker was there and of no use: it blocked
	// us, or had not confirmed everything when we closed the session.
	hung atomic.Bool

	closeOnce sync.Once
	closeErr  error
	closing   chan struct{} // closed when Close was called
	done      chan struct{} // closed when all is still

	mu       sync.Mutex
	writeErr error // why a publication could not be written
	err      error // why the session ended
}

func newSession(d *dialer, conn *amqp091.Connection, ch *amqp091.Channel) *Session {
	s := &Session{
		address:      d.address(),
		vhost:        d.uri.Vhost,
		closeTimeout: d.opts.CloseTimeout,
		frameSize:    conn.Config.FrameSize,
		wire:         d.wire,
		cork:         d.cork,
		conn:         conn,
		ch:           ch,
		inflight:     newInflight(),
		verdicts:     make(chan publisher.Verdict, d.opts.Window),
		ended:        ch.NotifyClose(make(chan *amqp091.Error, 1)),
		closing:      make(chan struct{}),
		done:         make(chan struct{}),
	}
	s.pump = pump{
		open: func() bool { return !ch.IsClosed() },
		// Without a buffer: see pump.
		returns: ch.NotifyReturn(make(chan amqp091.Return)),
		// With one, for what comes when the channel has ended and the
		// connection is on its way.
		blocks: conn.NotifyBlocked(make(chan amqp091.Blocking, 8)),
		blocked: func(reason string) {
			s.blocked.Store(&reason)
			s.wire.patient.Store(reason != "")
		},
		inflight: s.inflight,
		verdicts: s.verdicts,
		closing:  s.closing,
	}
	s.pump.blocked("")
	return s
}

func (s *Session) start() { go s.run() }

// run lives as long as the session.
func (s *Session) run() {
	defer close(s.done)
	s.pump.listen()
	byItself := !s.isClosing() // a Close from now on takes nothing of its reason
	// After an exception of the channel the connection is still there.
	s.hangUp(func() {})
	if end := <-s.ended; byItself || end != nil && end.Server {
		s.setErr(end)
	}
	unknown := s.pump.finish()
	s.hung.Store(s.Blocked() != "" || unknown > 0 && s.Err() == nil)
	close(s.verdicts)
}

// Publish implements publisher.Session. Messages are mandatory, and persistent
// unless they say otherwise themselves.
//
// Two things are not on the wire as one might wish. amqp091-go sends no header
// table when it is empty, so that a consumer sees the same for Headers that are
// nil and Headers that are empty; and a header table has no order.
//
// Message ids must differ among the publications without a verdict, or a
// return may be noted for an earlier one of the same id.
func (s *Session) Publish(p publisher.Publication) error {
	msg, err := encode(p, s.frameSize)
	if err != nil {
		return err
	}
	s.cork.hold()
	confirm, err := s.ch.PublishWithDeferredConfirm(p.Exchange, p.Key, true, false, msg)
	if err != nil {
		s.breakOff(err)
		return fmt.Errorf("publish %q: %w", p.Message.ID, err)
	}
	s.inflight.push(pending{p.Tag, p.Message.ID, confirm})
	return nil
}

// Flush implements publisher.Session.
func (s *Session) Flush() error {
	if err := s.cork.release(); err != nil {
		s.breakOff(err)
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// breakOff ends the connection after a write that failed, perhaps half way.
// The library does that for some of them only. A broker that has closed the
// connection may have said why, and the reader has not got to it yet.
func (s *Session) breakOff(err error) {
	if errors.Is(err, amqp091.ErrClosed) {
		return // not the reason, but its consequence
	}
	s.mu.Lock()
	s.writeErr = err
	s.mu.Unlock()
	time.AfterFunc(lastWords, func() { s.wire.Close() })
}

// Verdicts implements publisher.Session.
func (s *Session) Verdicts() <-chan publisher.Verdict { return s.verdicts }

// Blocked implements publisher.Session.
func (s *Session) Blocked() string { return *s.blocked.Load() }

// Err implements publisher.Session. The reason of a session that ended by
// itself stays when it is closed after that.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// setErr notes why the channel ended: the broker's own words if there are any.
func (s *Session) setErr(end *amqp091.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error = amqp091.ErrClosed
	switch {
	case end != nil && end.Server:
		err = end
	case s.writeErr != nil:
		err = s.writeErr
	case end != nil:
		err = end
	}
	s.err = fmt.Errorf("session with %s ended: %w", s.address, endFault(err, s.vhost))
}

func (s *Session) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// Close implements publisher.Session. It says goodbye, but waits no longer
// than Options.CloseTimeout for the answer, and for nobody who reads verdicts;
// its error says that there was no answer. What has no verdict yet is unknown.
func (s *Session) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.closeErr = s.hangUp(func() { <-s.done })
	})
	return s.closeErr
}

// hangUp closes the connection, waits for what follows, and helps both after
// the close timeout. The library's own deadline is no bound: its heartbeats
// push it further, and a write that hangs holds its locks.
func (s *Session) hangUp(follow func()) error {
	patience := s.closeTimeout
	if s.Blocked() != "" {
		patience = 0 // it does not read, so it will not answer
	}
	impatience := time.AfterFunc(patience, func() { s.wire.Close() })
	defer impatience.Stop()
	s.cork.release() // an error is that of Close, too
	err := s.conn.Close()
	follow()
	if errors.Is(err, amqp091.ErrClosed) {
		return nil // it was closed before
	}
	return err
}
