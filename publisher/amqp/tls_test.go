package amqp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"spoolfs/integration/rabbit"
	"spoolfs/publisher"
	"spoolfs/queue"
)

// authority signs certificates for a test.
type authority struct {
	t    testing.TB
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string // of its certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), key: newKey(t)}
	// The broker's user must read them.
	for dir := a.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: t.Name()}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(100 * time.Hour),
	}
	a.file = a.write("ca.pem", "CERTIFICATE", a.sign(a.cert, a.key))
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

// write makes a PEM file.
func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o644); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue makes a certificate for a name, and returns the files.
func (a *authority) issue(file, name string, until time.Time) (cert, key string) {
	a.t.Helper()
	k := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(file+".pem", "CERTIFICATE", a.sign(template, k)), a.write(file+".key", "EC PRIVATE KEY", der)
}

// tlsRelay is a relay that speaks TLS with a certificate that can be replaced.
type tlsRelay struct {
	*rabbit.Relay
	cert atomic.Pointer[tls.Certificate]
}

func newTLSRelay(t testing.TB) *tlsRelay {
	t.Helper()
	r := &tlsRelay{}
	l := tls.NewListener(listen(t), &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return r.cert.Load(), nil
	}})
	r.Relay = newRelayOn(t, l)
	return r
}

// use has new connections meet a certificate.
func (r *tlsRelay) use(t testing.TB, cert, key string) {
	t.Helper()
	c, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	r.cert.Store(&c)
}

func (r *tlsRelay) url() string { return "amqps://guest:guest@" + r.Addr() + "/" }

// TestTLS_Certificates: chain, name and age are checked, what is wrong is told,
// and an expired certificate is seen in the stats, too (B16).
func TestTLS_Certificates(t *testing.T) {
	checkLeaks(t)
	a, stranger := newAuthority(t), newAuthority(t)
	r := newTLSRelay(t)
	soon := time.Now().Add(time.Hour).Truncate(time.Second)
	past := time.Now().Add(-time.Minute).Truncate(time.Second)
	for name, c := range map[string]struct {
		issuer *authority
		host   string
		until  time.Time
		tls    TLS
		want   string // in the error; empty is none
	}{
		"Good":       {a, "127.0.0.1", soon, TLS{CA: a.file}, ""},
		"Expired":    {a, "127.0.0.1", past, TLS{CA: a.file}, "expired"},
		"WrongName":  {a, "broker.example.org", soon, TLS{CA: a.file}, "127.0.0.1"},
		"OwnName":    {a, "broker.example.org", soon, TLS{CA: a.file, ServerName: "broker.example.org"}, ""},
		"Stranger":   {stranger, "127.0.0.1", soon, TLS{CA: a.file}, "unknown authority"},
		"System":     {a, "127.0.0.1", soon, TLS{}, "unknown authority"},
		"Skipped":    {stranger, "broker.example.org", past, TLS{SkipVerify: true}, ""},
		"NoCA":       {a, "127.0.0.1", soon, TLS{CA: a.file + "x"}, "no such file"},
		"NotPEM":     {a, "127.0.0.1", soon, TLS{CA: "/dev/null"}, "no certificate in"},
		"NoOwnCert":  {a, "127.0.0.1", soon, TLS{CA: a.file, Cert: a.file + "x", Key: "x"}, "no such file"},
		"NotItsName": {a, "127.0.0.1", soon, TLS{CA: a.file, ServerName: "broker.example.org"}, "broker.example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			cert, key := c.issuer.issue("server", c.host, c.until)
			r.use(t, cert, key)
			b := NewBrokers(Options{URL: r.url(), TLS: c.tls})
			s, err := b.Dial(t.Context())
			if err == nil {
				s.Close()
			}
			if c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" {
				wantErr(t, err, publisher.Retriable, c.want)
				wantCause(t, err, publisher.Certificate)
			}
			if expiry := b.Stats().Expiry.Server; (c.want == "" || name == "Expired") && !expiry.Equal(c.until) {
				t.Errorf("the certificate expires %v, the stats say %v", c.until, expiry)
			}
		})
	}
	t.Run("NotTLS", func(t *testing.T) {
		_, err := Dial(t.Context(), Options{URL: "amqps://guest:guest@" + newRelay(t).Addr() + "/"})
		wantErr(t, err, publisher.Retriable, "TLS")
		wantCause(t, err, publisher.Certificate)
	})
}

// TestTLS_Replaced: a certificate that expires and is replaced, and a new
// authority in the file, need no restart (B16).
func TestTLS_Replaced(t *testing.T) {
	a := newAuthority(t)
	r := newTLSRelay(t)
	q := declareQueue(t, nil)
	soon := time.Now().Add(time.Hour).Truncate(time.Second)
	cert, key := a.issue("server", "127.0.0.1", soon)
	r.use(t, cert, key)
	l := startLine(t, publisher.Options{Exchange: q.Exchange}, Options{URL: r.url(), TLS: TLS{CA: a.file}})
	l.append(1000, nil)
	l.untilEmpty()

	cert, key = a.issue("server", "127.0.0.1", time.Now().Add(-time.Minute))
	r.use(t, cert, key)
	r.Cut()
	l.append(1000, nil)
	l.until("aware of the certificate", func(_ queue.Stats, p publisher.Stats) bool {
		return p.LastCause == publisher.Certificate
	})
	other := newAuthority(t)
	later := soon.Add(time.Hour)
	cert, key = other.issue("server", "127.0.0.1", later)
	r.use(t, cert, key)
	text, err := os.ReadFile(other.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	l.untilEmpty()
	if got := l.brokers.Stats().Expiry.Server; !got.Equal(later) {
		t.Errorf("the new certificate expires %v, the stats say %v", later, got)
	}
	l.checkArrived(q, 1)
}

// TestTLS_External: a client certificate is the login, without a password, at a
// broker that speaks TLS itself; one that the broker does not know is refused.
func TestTLS_External(t *testing.T) {
	checkLeaks(t)
	a := newAuthority(t)
	var files rabbit.TLS
	files.CA = a.file
	files.Cert, files.Key = a.issue("server", "127.0.0.1", time.Now().Add(time.Hour))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	n, err := rabbit.Start(ctx, rabbit.Options{TLS: &files})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for _, args := range [][]string{{"add_user", "node1", "unused"}, {"set_permissions", "node1", ".*", ".*", "^$"}} {
		if _, err := n.Ctl(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	cert, key := a.issue("node1", "node1", until)
	opts := Options{URL: n.TLSURL(), External: true, Exchanges: []string{"xs_example"}, TLS: TLS{CA: a.file, Cert: cert, Key: key}}

	b := NewBrokers(opts)
	s, err := b.Dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, s.(*Session), publication("xs_example", 1))
	if v := <-s.Verdicts(); v.Outcome != publisher.Confirmed {
		t.Errorf("got %+v, %v", v, s.Err())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := b.Stats().Expiry.Client; !got.Equal(until) {
		t.Errorf("our certificate expires %v, the stats say %v", until, got)
	}

	opts.TLS.Cert, opts.TLS.Key = a.issue("nobody", "nobody", until)
	_, err = Dial(ctx, opts)
	wantErr(t, err, publisher.Lazy, "403")
	wantCause(t, err, publisher.LoginRefused)
	stranger := newAuthority(t)
	opts.TLS.Cert, opts.TLS.Key = stranger.issue("node1", "node1", until)
	_, err = Dial(ctx, opts)
	wantErr(t, err, publisher.Retriable, "tls")
	wantCause(t, err, publisher.Certificate)
}
