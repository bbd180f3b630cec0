package publisher

import (
	"fmt"
	"time"

	"spoolfs/queue"
)

// expired says why a message is too old to be sent; empty if it is not.
func (o *Options) expired(m *queue.Message, now time.Time) string {
	if o.TTL > 0 {
		if age := now.Sub(m.Ingested); age > o.TTL {
			return fmt.Sprintf("expired: stored %s ago, the limit is %s", age.Round(time.Second), o.TTL)
		}
	}
	if o.RetryTTL > 0 {
		since := m.PubTime
		if since.IsZero() {
			since = m.Ingested
		}
		if age := now.Sub(since); age > o.RetryTTL {
			return fmt.Sprintf("expired: published %s ago, the limit is %s", age.Round(time.Second), o.RetryTTL)
		}
	}
	return ""
}

// expire settles those of the leases that are too old and returns the others.
// After an error it returns all that are not settled.
func (p *Publisher) expire(leases []*queue.Lease) ([]*queue.Lease, error) {
	if p.opts.TTL <= 0 && p.opts.RetryTTL <= 0 {
		return leases, nil
	}
	now := time.Now()
	fresh := make([]*queue.Lease, 0, len(leases))
	for i, l := range leases {
		reason := p.opts.expired(l.Message, now)
		if reason == "" {
			fresh = append(fresh, l)
			continue
		}
		if err := p.settle(flight{lease: l}, Expired, reason); err != nil {
			return append(fresh, leases[i:]...), err
		}
	}
	return fresh, nil
}
