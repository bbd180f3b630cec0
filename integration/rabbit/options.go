package rabbit

import "time"

// Options are the settings of a node. The zero value is a good one.
type Options struct {
	// Server is the path of the script rabbitmq-server; the default is
	// Debian's. It must stand in the same directory as rabbitmqctl.
	Server string

	// StartTimeout bounds each start; the default is 90 s, ten times what it
	// takes on a busy machine.
	StartTimeout time.Duration

	// TLS, if set, has the node listen for amqps, too, and log in whoever shows
	// a certificate of the CA as the user of its common name (EXTERNAL).
	TLS *TLS
}

// TLS are files in PEM that the user of the node can read.
type TLS struct{ CA, Cert, Key string }

func (o Options) withDefaults() Options {
	if o.Server == "" {
		o.Server = "/usr/lib/rabbitmq/bin/rabbitmq-server"
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 90 * time.Second
	}
	return o
}
