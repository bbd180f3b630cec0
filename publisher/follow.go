package publisher

import (
	"errors"
	"strings"
	"time"

	"spoolfs/queue"
)

// Follower is a route that follows another one, with its limits of age, which are
// judged at the hand-over: see the same fields of Options.
type Follower struct {
	Route         *queue.Route
	TTL, RetryTTL time.Duration
	DropExpired   bool
}

func (f *Follower) validate(after *queue.Route) error {
	if f.Route == nil || f.Route == after {
		return errors.New("a publisher needs another route to follow its own")
	}
	return nil
}

func (o *Options) validateFollowers() error {
	var err error
	for i := range o.Then {
		err = errors.Join(err, o.Then[i].validate(o.Route))
	}
	if o.Else != nil {
		err = errors.Join(err, o.Else.validate(o.Route))
	}
	return err
}

// finish ends the leases of messages that the broker has confirmed, and hands them
// to the routes of Then, all or nothing.
func (p *Publisher) finish(leases ...*queue.Lease) error {
	if len(p.opts.Then) == 0 {
		return p.opts.Route.Ack(leases...)
	}
	now := time.Now()
	all := make([]queue.Handover, len(leases))
	for i, l := range leases {
		all[i] = queue.Handover{Lease: l, Follow: p.follow(*l.Message, now, p.opts.Then...)}
	}
	return p.handOver(all...)
}

// deadLetter ends the lease of a message that has failed for good: it goes on in the
// route of Else, with the reason and this route in headers, or is a dead letter if
// there is none.
func (p *Publisher) deadLetter(l *queue.Lease, reason string) error {
	if p.opts.Else == nil {
		return p.opts.Route.DeadLetter(l, reason)
	}
	m := *l.Message
	m.Headers = failedHeaders(m.Headers, p.opts.Route.Name(), reason)
	return p.handOver(queue.Handover{Lease: l, Follow: p.follow(m, time.Now(), *p.opts.Else)})
}

// The headers of a message that has failed.
const (
	routeHeader  = "x-spool-failed-route"
	reasonHeader = "x-spool-failed-reason"
)

// failedHeaders are the headers of a message with where and why it has failed last. It
// may have failed before, or have brought such headers itself: no broker takes one twice.
func failedHeaders(headers []queue.Header, route, reason string) []queue.Header {
	kept := make([]queue.Header, 0, len(headers)+2)
	for _, h := range headers {
		if !strings.EqualFold(h.Name, routeHeader) && !strings.EqualFold(h.Name, reasonHeader) {
			kept = append(kept, h)
		}
	}
	return append(kept, queue.Header{Name: routeHeader, Value: route}, queue.Header{Name: reasonHeader, Value: headerText(reason)})
}

// headerText is a text that any broker takes as the value of a header.
func headerText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxShortString)], "")
}

func (p *Publisher) handOver(all ...queue.Handover) error {
	if err := p.opts.Route.HandOver(all...); err != nil {
		return err
	}
	n := 0
	for _, h := range all {
		n += len(h.Follow)
	}
	p.update(func(s *Stats) { s.FollowedTotal += uint64(n) })
	return nil
}

// follow is what becomes of a message in the routes that follow: what is too old
// for one is a dead letter of it, or gone and counted. It goes to the exchange of each: one
// that its record names is of the first route's broker, and may be why it has failed.
func (p *Publisher) follow(m queue.Message, now time.Time, to ...Follower) []queue.Follow {
	m.Attempts, m.Reason, m.Exchange = 0, "", ""
	follow := make([]queue.Follow, 0, len(to))
	for _, f := range to {
		next := m
		next.Reason = (&Options{TTL: f.TTL, RetryTTL: f.RetryTTL}).expired(&m, now)
		if next.Reason != "" {
			p.update(func(s *Stats) { s.ExpiredTotal++ })
			if f.DropExpired {
				continue
			}
		}
		follow = append(follow, queue.Follow{Route: f.Route, Message: next})
	}
	return follow
}
