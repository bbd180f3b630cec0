package amqp

import (
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

// Credentials are how to log in: user and password, or External.
type Credentials struct {
	User, Password string
	External       bool // with our certificate, and no password
}

// Options are the settings of a session.
type Options struct {
	// URL is an AMQP URI: amqp:// or amqps://, with user, password, virtual
	// host, and the query parameters of RabbitMQ (cacertfile, certfile,
	// keyfile, server_name_indication, auth_mechanism=external, heartbeat,
	// channel_max), which come before the fields below.
	URL string

	// Credentials returns how to log in, in the place of what the URL says. It
	// is called at each Dial, so that a new password needs no restart. Its
	// error must not hold the password.
	Credentials func() (Credentials, error)

	// External logs in with our certificate instead of a password.
	External bool

	// TLS are the settings of amqps.
	TLS TLS

	// Exchanges are declared before the first message: durable topic exchanges
	// that are not deleted automatically. Where we lack the permission to make
	// them it is enough that they exist. The default exchange, "", needs none.
	Exchanges []string

	// Passive makes no exchange: those that do not exist are an error.
	Passive bool

	// Window is how many verdicts wait for their reader before the session
	// leaves the next ones where they are; the default is 1024. It does not
	// bound how much may be published without a verdict.
	Window int

	// Heartbeat is the interval in which each side shows that it lives; the
	// default is 10 s and the least 1 s. The broker may lower it, the URL's
	// heartbeat comes before it.
	Heartbeat time.Duration

	// DialTimeout bounds Dial; the default is 10 s.
	DialTimeout time.Duration

	// WriteTimeout is how long the network may take nothing of what we send
	// before the session ends; the default is 20 s.
	WriteTimeout time.Duration

	// CloseTimeout bounds Close; the default is 5 s.
	CloseTimeout time.Duration

	// Name is what the broker shows as the name of the connection; the default
	// is the name of this host.
	Name string

	// Version is our version, for the broker to show.
	Version string
}

func (o Options) withDefaults() Options {
	if o.Window <= 0 {
		o.Window = 1024
	}
	setDefault(&o.Heartbeat, 10*time.Second)
	setDefault(&o.DialTimeout, 10*time.Second)
	setDefault(&o.WriteTimeout, 20*time.Second)
	setDefault(&o.CloseTimeout, 5*time.Second)
	if o.Name == "" {
		o.Name, _ = os.Hostname() // it is only for show
	}
	return o
}

// withURL takes over what the URL's query says.
func (o Options) withURL(uri amqp091.URI) Options {
	for _, f := range []struct {
		field *string
		value string
	}{
		{&o.TLS.CA, uri.CACertFile},
		{&o.TLS.Cert, uri.CertFile},
		{&o.TLS.Key, uri.KeyFile},
		{&o.TLS.ServerName, uri.ServerName},
	} {
		if f.value != "" {
			*f.field = f.value
		}
	}
	if slices.ContainsFunc(uri.AuthMechanism, func(m string) bool { return strings.EqualFold(m, "external") }) {
		o.External = true
	}
	// ParseURI has read it, but does not show whether it was there.
	if u, err := url.Parse(o.URL); err == nil {
		if n, err := strconv.ParseUint(u.Query().Get("heartbeat"), 10, 16); err == nil {
			o.Heartbeat = time.Duration(n) * time.Second
		}
	}
	return o
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}
