package rabbit

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"
)

// Relay is a TCP proxy before a broker whose network can fail.
type Relay struct {
	// Up and Down, held, hold up what goes to the broker and what comes from
	// it: a black hole that still acknowledges.
	Up, Down sync.Mutex

	listener net.Listener
	target   string
	delay    time.Duration
	wg       sync.WaitGroup

	mu       sync.Mutex // guards what follows
	conns    map[net.Conn]bool
	closed   bool
	accepted int
	up, down int // bytes of a new connection before it is cut; -1 is no limit
}

// RelayOptions are the settings of a Relay.
type RelayOptions struct {
	// Listener takes the connections; the default is one on a free port of
	// 127.0.0.1. One of crypto/tls makes an amqps broker of an amqp one.
	Listener net.Listener

	// Delay is added to each direction.
	Delay time.Duration
}

// NewRelay starts a relay to the broker of an AMQP URL.
func NewRelay(broker string, opts RelayOptions) (*Relay, error) {
	u, err := url.Parse(broker)
	if err != nil {
		return nil, err
	}
	l := opts.Listener
	if l == nil {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	r := &Relay{listener: l, target: u.Host, delay: opts.Delay, conns: make(map[net.Conn]bool), up: -1, down: -1}
	r.wg.Go(r.accept)
	return r, nil
}

// Addr is where the relay listens.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// URL is the broker's URL by way of the relay.
func (r *Relay) URL() string { return fmt.Sprintf("amqp://guest:guest@%s/", r.Addr()) }

// Accepted is how many connections have come.
func (r *Relay) Accepted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted
}

// Allow cuts each new connection after so many bytes to the broker, or from it;
// -1 is no limit.
func (r *Relay) Allow(up, down int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up, r.down = up, down
}

// Cut ends all connections.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.Close()
	}
}

// Close ends the relay and waits until all is still. Up and Down must be free.
func (r *Relay) Close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.Cut()
	r.wg.Wait()
	return err
}

func (r *Relay) accept() {
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
		r.carry(client, broker)
	}
}

// carry starts to copy both ways.
func (r *Relay) carry(client, broker net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		client.Close()
		broker.Close()
		return
	}
	r.accepted++
	r.conns[client], r.conns[broker] = true, true
	pair := &pair{relay: r, conns: [2]net.Conn{client, broker}}
	up := &pipe{pair: pair, from: client, to: broker, gate: &r.Up, limit: r.up, delay: r.delay}
	down := &pipe{pair: pair, from: broker, to: client, gate: &r.Down, limit: r.down, delay: r.delay}
	for _, p := range []*pipe{up, down} {
		chunks := make(chan chunk, 1<<12)
		r.wg.Go(func() { p.read(chunks) })
		r.wg.Go(func() { p.write(chunks) })
	}
}

// pair is both ends of a connection.
type pair struct {
	relay *Relay
	conns [2]net.Conn
}

func (p *pair) close() {
	p.relay.mu.Lock()
	defer p.relay.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
		delete(p.relay.conns, c)
	}
}

// pipe is one direction of a connection.
type pipe struct {
	pair     *pair
	from, to net.Conn
	gate     *sync.Mutex
	limit    int
	delay    time.Duration
}

// chunk is what came at a time.
type chunk struct {
	at   time.Time
	data []byte
}

func (p *pipe) read(chunks chan<- chunk) {
	defer close(chunks)
	for {
		buf := make([]byte, 32<<10)
		n, err := p.from.Read(buf)
		if n > 0 {
			chunks <- chunk{time.Now(), buf[:n]}
		}
		if err != nil {
			return
		}
	}
}

// write passes on what came until the end or the limit. It takes all there is
// from chunks, so that read ends.
func (p *pipe) write(chunks <-chan chunk) {
	for c := range chunks {
		if p.delay > 0 {
			time.Sleep(time.Until(c.at.Add(p.delay)))
		}
		p.gate.Lock()
		n := len(c.data)
		if p.limit >= 0 {
			n = min(n, p.limit)
			p.limit -= n
		}
		_, err := p.to.Write(c.data[:n])
		p.gate.Unlock()
		if err != nil || n < len(c.data) || p.limit == 0 {
			p.pair.close()
		}
	}
	p.pair.close()
}
