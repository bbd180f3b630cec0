package amqp

import (
	"net"
	"sync"
)

// corkSize is from how many bytes on a cork lets go by itself.
const corkSize = 64 << 10

// cork is a connection that can hold back what is written, so that many messages
// share one system call, which is most of what a message costs. The library
// flushes each of them.
type cork struct {
	net.Conn

	mu   sync.Mutex // guards what follows
	held bool
	buf  []byte
}

// Write writes, or keeps for later. An error of what was kept comes with a later
// Write, or with release.
func (c *cork) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.held {
		return c.Conn.Write(b)
	}
	c.buf = append(c.buf, b...)
	if len(c.buf) >= corkSize {
		return len(b), c.writeLocked()
	}
	return len(b), nil
}

// hold keeps what is written from now on.
func (c *cork) hold() {
	c.mu.Lock()
	c.held = true
	c.mu.Unlock()
}

// release writes what was kept, and keeps nothing more.
func (c *cork) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
	return c.writeLocked()
}

func (c *cork) writeLocked() error {
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.buf)
	c.buf = c.buf[:0]
	return err
}
