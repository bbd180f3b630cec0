package amqp

import (
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// hungUp is a connection whose other side has said why it hung up. Writing to it
// fails, and what was said is read after that.
type hungUp struct {
	net.Conn
	said chan struct{} // closed when it may be read
	once sync.Once
}

func (h *hungUp) Read(b []byte) (int, error) {
	<-h.said
	return h.Conn.Read(b)
}

func (h *hungUp) Write([]byte) (int, error) {
	h.once.Do(func() { time.AfterFunc(50*time.Millisecond, func() { close(h.said) }) })
	return 0, syscall.EPIPE
}

// switched is a connection that can be replaced.
type switched struct{ net.Conn }

// TestTLS_AlertIsWaitedFor: a broker that refuses our certificate says so after
// the handshake and hangs up. Whoever writes may meet the end of the connection
// before the alert is read, and must not take it for a lost connection.
func TestTLS_AlertIsWaitedFor(t *testing.T) {
	checkLeaks(t)
	a := newAuthority(t)
	cert, key := a.issue("server", "127.0.0.1", time.Now().Add(time.Hour))
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	l := tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert})
	refused := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = conn.(*tls.Conn).Handshake() // sends the alert
			conn.Close()
		}
		refused <- err
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	inner := &switched{conn}
	client := tls.Client(inner, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; err == nil {
		t.Fatal("the client was not refused")
	}
	inner.Conn = &hungUp{Conn: conn, said: make(chan struct{})}

	s := &secured{Conn: client, patience: time.Minute, ended: make(chan struct{})}
	read := make(chan error, 1)
	go func() {
		_, err := s.Read(make([]byte, 1))
		read <- err
	}()
	_, err = s.Write([]byte("AMQP"))
	if got := s.alerted(err); !saidByPeer(got) {
		t.Errorf("got %v, want the alert", got)
	}
	<-read
}
