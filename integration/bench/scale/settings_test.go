package scale

import (
	"time"

	"spoolfs/publisher"
)

// settings are a world, and how the publishers in it are set.
type settings struct {
	Seed  uint64
	Nodes int

	// Outage is how long the broker is away, and Backlog how many messages each node
	// makes in that time.
	Outage  time.Duration
	Backlog int

	// Confirms and Handshakes are what the broker does in a second, Credit is how many
	// messages it takes of a connection at a time.
	Confirms, Handshakes float64
	Credit               int

	// Limit is after how long without being done the rest is given up.
	Limit time.Duration

	// The settings of the publishers; 0 is their default.
	RetryMin, RetryMax time.Duration
	Window             int

	// Together has all nodes draw the same waits, as without any chance.
	Together bool
}

func (s *settings) ensureDefaults() {
	if s.Credit == 0 {
		s.Credit = 400 // credit_flow_default_credit of RabbitMQ
	}
	if s.Limit == 0 {
		s.Limit = time.Hour
	}
}

// options are those of a node's publisher.
func (s *settings) options(jitter func(time.Duration) time.Duration) publisher.Options {
	if s.Together {
		jitter = func(most time.Duration) time.Duration { return most }
	}
	return publisher.Options{
		Exchange: "x", RetryMin: s.RetryMin, RetryMax: s.RetryMax, Window: s.Window, Jitter: jitter,
	}
}
