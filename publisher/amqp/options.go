package amqp

import (
	"os"
	"time"
)

// Options are the settings of a session.
type Options struct {
	// URL is an AMQP URI: amqp:// or amqps://, with user, password, virtual
	// host, and the query parameters of RabbitMQ (cacertfile, certfile,
	// keyfile, server_name_indication, auth_mechanism, heartbeat, channel_max).
	// The files are read at each Dial.
	URL string

	// Exchanges are declared before the first message: durable topic exchanges
	// that are not deleted automatically. Where we lack the permission to make
	// them it is enough that they exist. The default exchange, "", needs none.
	Exchanges []string

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

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}
