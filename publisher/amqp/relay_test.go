package amqp

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// relay is a TCP proxy before the node whose network can fail.
type relay struct {
	listener net.Listener
	target   string

	// Held, they hold up what goes to the broker and what comes from it.
	up, down sync.Mutex

	wg sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	limit int // bytes from the broker before a connection is cut; -1 is none
}

func newRelay(tb testing.TB) *relay {
	tb.Helper()
	return newRelayOn(tb, listen(tb))
}

func newRelayOn(tb testing.TB, l net.Listener) *relay {
	tb.Helper()
	u, err := url.Parse(node.URL())
	if err != nil {
		tb.Fatal(err)
	}
	r := &relay{listener: l, target: u.Host, limit: -1}
	r.wg.Go(r.accept)
	tb.Cleanup(func() {
		l.Close()
		r.cut()
		r.wg.Wait()
	})
	return r
}

func (r *relay) url() string { return "amqp://guest:guest@" + r.listener.Addr().String() + "/" }

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		broker, err := net.Dial("tcp", r.target)
		if err != nil {
			client.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, client, broker)
		limit := r.limit
		r.mu.Unlock()
		r.wg.Go(func() { pipe(broker, client, &r.up) })
		if limit < 0 {
			r.wg.Go(func() { pipe(client, broker, &r.down) })
		} else {
			r.wg.Go(func() {
				io.CopyN(client, broker, int64(limit))
				client.Close()
				broker.Close()
			})
		}
	}
}

// allow lets new connections live until so many bytes have come from the
// broker.
func (r *relay) allow(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = bytes
}

func pipe(to, from net.Conn, gate *sync.Mutex) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		gate.Lock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				from.Close()
			}
		}
		gate.Unlock()
		if err != nil {
			return
		}
	}
}

// cut ends all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
}
