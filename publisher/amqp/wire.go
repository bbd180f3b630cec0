package amqp

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// wire is the network connection below a session. TCP alone takes a quarter of
// an hour to notice that nobody takes what we send, and amqp091-go sets no
// write deadline: its heartbeats then wait behind the write that hangs.
type wire struct {
	net.Conn
	timeout time.Duration

	// silence is how long the broker may say nothing; 0 is for ever.
	silence  time.Duration
	lastRead time.Time // used by the one who reads

	// patient is set while the broker blocks us. Then it reads nothing, and that
	// it takes nothing has no meaning: BlockedTimeout is for that.
	patient atomic.Bool

	// broken is set when a write has taken too long, and ends all writing: what
	// it leaves behind is half a frame, and who wrote it may have been one of
	// the library's goroutines, which tells nobody.
	broken atomic.Bool
}

// Read goes on where the deadline was not moved because a write waits with
// patience, and the goroutine of the library that moves it behind that write. The
// broker has its heartbeats while it blocks us, too.
func (w *wire) Read(b []byte) (int, error) {
	for {
		n, err := w.Conn.Read(b)
		now := time.Now()
		if n > 0 {
			w.lastRead = now
		}
		left := w.lastRead.Add(w.silence).Sub(now)
		if n > 0 || left <= 0 || !w.patient.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := w.SetReadDeadline(now.Add(left)); err != nil {
			return 0, err
		}
	}
}

// Write ends all writing for good if it takes too long.
func (w *wire) Write(b []byte) (written int, err error) {
	if w.broken.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	for {
		if err := w.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
			return written, err
		}
		n, err := w.Conn.Write(b[written:])
		written += n
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if late && w.patient.Load() {
			continue
		}
		if late {
			w.broken.Store(true)
		}
		return written, err
	}
}
