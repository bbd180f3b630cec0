package amqp

import (
	"context"
	"errors"
	"strings"
	"sync"

	"spoolfs/publisher"
)

// Brokers are several brokers of which any one will do. Dial tries them in turn,
// beginning with the one that was there last, or, if that one blocked us or did
// not confirm what we sent, with the next.
type Brokers struct {
	list []Options

	mu    sync.Mutex // guards what follows
	first int
	last  *Session // that was opened; nil before the first
	stats Stats
}

// Stats is a snapshot of Brokers.
type Stats struct {
	// Address is the broker of the last session that was opened, as host:port;
	// empty before the first.
	Address string

	// Expiry is that of the last dial that got so far.
	Expiry Expiry
}

// NewBrokers makes Brokers of the settings of each, at least one.
func NewBrokers(list ...Options) *Brokers { return &Brokers{list: list} }

// Dial opens a session with the first broker that takes one. If none does the
// error has what each of them said, and is lazy only if all are.
func (b *Brokers) Dial(ctx context.Context) (publisher.Session, error) {
	first := b.begin()
	var failures []error
	for i := range b.list {
		n := (first + i) % len(b.list)
		s, expiry, err := dialBroker(ctx, b.list[n])
		b.note(n, s, expiry)
		if err == nil {
			return s, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, together(failures)
}

// begin is the broker to begin with.
func (b *Brokers) begin() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil && b.last.hung.Load() {
		b.first = (b.first + 1) % len(b.list)
	}
	b.last = nil
	return b.first
}

func (b *Brokers) note(n int, s *Session, expiry Expiry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s != nil {
		b.first, b.last, b.stats.Address = n, s, s.address
	}
	if expiry != (Expiry{}) {
		b.stats.Expiry = expiry
	}
}

// Stats returns a snapshot.
func (b *Brokers) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stats
}

// together makes one fault of several. What needs somebody's hand is shown as
// the cause, before what may pass.
func together(failures []error) error {
	if len(failures) == 1 {
		return failures[0]
	}
	sum := &publisher.Fault{Class: publisher.Lazy}
	texts := make([]string, 0, len(failures))
	for _, err := range failures {
		texts = append(texts, err.Error())
		f := &publisher.Fault{Cause: publisher.Lost}
		errors.As(err, &f)
		if sum.Cause == "" || f.Class == publisher.Lazy && sum.Class != publisher.Lazy {
			sum.Cause = f.Cause
		}
		if f.Class != publisher.Lazy {
			sum.Class = publisher.Retriable
		}
	}
	sum.Err = errors.New(strings.Join(texts, "; "))
	return sum
}
