package amqp

import (
	"net"
	"time"
)

// wire is the network connection below a session. TCP alone takes a quarter of
// an hour to notice that nobody takes what we send, and amqp091-go sets no
// write deadline: its heartbeats then wait behind the write that hangs.
type wire struct {
	net.Conn
	timeout time.Duration
}

// Write ends the connection for good if it takes too long: what it leaves
// behind is half a frame.
func (w *wire) Write(b []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	return w.Conn.Write(b)
}
