package rabbit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken from below 32768, where the kernel does not look for the
// local port of an outgoing connection: one that is free while its node is
// stopped stays free.
const (
	firstPort = 20000
	lastPort  = 31999
)

// A port is a TCP port of 127.0.0.1 that no other node of this machine takes,
// also while nothing listens on it. What reserves it is an abstract socket of
// the same number, which goes when its process goes.
type port struct {
	number int
	lock   net.Listener
}

func reservePort() (*port, error) {
	for range 100 {
		number := firstPort + rand.IntN(lastPort-firstPort+1)
		lock, err := net.Listen("unix", fmt.Sprintf("@spoolfs-rabbit-port-%d", number))
		if err != nil {
			continue
		}
		if portFree(number) {
			return &port{number, lock}, nil
		}
		lock.Close()
	}
	return nil, errors.New("find a free port: gave up after 100 attempts")
}

func portFree(number int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", number))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// used reports whether a program listens on the port.
func (p *port) used() bool {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.number))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func (p *port) release() error { return p.lock.Close() }
