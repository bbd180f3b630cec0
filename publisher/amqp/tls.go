package amqp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"spoolfs/publisher"
)

// TLS are the settings of amqps. The files are PEM, and are read at each Dial.
type TLS struct {
	// CA has the certificates of authorities that may have signed the
	// broker's; the default are those of the system.
	CA string

	// Cert and Key are our certificate, with what lies between it and its
	// authority, and its key. The default is none.
	Cert, Key string

	// ServerName is the name that the broker's certificate must have; the
	// default is the host of the URL.
	ServerName string

	// SkipVerify accepts any certificate of the broker, from anybody who
	// stands between us.
	SkipVerify bool
}

// config reads the files.
func (t TLS) config(host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.SkipVerify}
	if c.ServerName == "" {
		c.ServerName = host
	}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no certificate in %s", t.CA)
		}
	}
	if t.Cert != "" || t.Key != "" {
		cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// secure makes a TLS connection of a plain one, and takes note of when the
// certificates expire.
func (d *dialer) secure(ctx context.Context, conn net.Conn) (net.Conn, error) {
	config, err := d.opts.TLS.config(d.uri.Host)
	if err != nil {
		return nil, &publisher.Fault{Cause: publisher.Certificate, Err: fmt.Errorf("certificates: %w", err)}
	}
	for _, own := range config.Certificates {
		d.expiry.Client = own.Leaf.NotAfter
	}
	client := tls.Client(conn, config)
	if err := client.HandshakeContext(ctx); err != nil {
		var invalid x509.CertificateInvalidError
		if errors.As(err, &invalid) && invalid.Cert != nil {
			d.expiry.Server = invalid.Cert.NotAfter
		}
		return nil, tlsFault(err)
	}
	d.expiry.Server = earliest(client.ConnectionState().PeerCertificates)
	d.secured = &secured{Conn: client, patience: lastWords, ended: make(chan struct{})}
	return d.secured, nil
}

// secured is a TLS connection that remembers whether the broker has ended it
// with an alert. With TLS 1.3 it looks at our certificate after the handshake,
// and the library makes a text of what it reads then.
type secured struct {
	*tls.Conn
	patience time.Duration // of a Write that has failed
	alert    atomic.Pointer[error]
	ended    chan struct{} // closed when a Read has failed
	once     sync.Once
	ready    atomic.Bool // the AMQP handshake is over
}

func (s *secured) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if err != nil {
		if saidByPeer(err) {
			s.alert.CompareAndSwap(nil, &err)
		}
		s.once.Do(func() { close(s.ended) })
	}
	return n, err
}

// Write gives the reader time to come upon an alert when it meets the end of the
// connection that follows one.
func (s *secured) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if err != nil && !s.ready.Load() {
		late := time.NewTimer(s.patience)
		defer late.Stop()
		select {
		case <-s.ended:
		case <-late.C:
		}
	}
	return n, err
}

// alerted ends the AMQP handshake, and returns the alert, or err if there was
// none.
func (s *secured) alerted(err error) error {
	if s == nil {
		return err
	}
	s.ready.Store(true)
	if alert := s.alert.Load(); alert != nil {
		return *alert
	}
	return err
}

// Expiry is when certificates expire; zero when there are none.
type Expiry struct {
	Server time.Time // the first one of the broker's chain
	Client time.Time // ours
}

func earliest(chain []*x509.Certificate) (first time.Time) {
	for _, c := range chain {
		if first.IsZero() || c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first
}
