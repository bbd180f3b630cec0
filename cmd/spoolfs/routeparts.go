package main

import (
	"context"
	"sync/atomic"

	"spoolfs/publisher"
	"spoolfs/publisher/amqp"
	"spoolfs/queue"
)

// routeParts are the parts of a daemon that belong to a route.
type routeParts struct {
	queue     *queue.Route
	format    *liveFormat
	publisher *publisher.Publisher
	live      atomic.Pointer[liveRoute]

	// stop ends the publisher, which closes ended. Both are nil before it runs,
	// and guarded by routeSet.mu.
	stop  context.CancelFunc
	ended chan struct{}
}

// liveRoute is the configuration of a route that is in force, and what was made of
// it.
type liveRoute struct {
	name    string
	queue   *queue.Route
	dir     string // of the mount's root; empty for the root itself
	flags   *routeFlags
	brokers *amqp.Brokers

	// subjects says that messages are to say what they are about.
	subjects bool
}

// newLiveRoute makes what follows from the configuration of a route.
func newLiveRoute(q *queue.Route, dir string, flags *routeFlags) *liveRoute {
	return &liveRoute{name: q.Name(), queue: q, dir: dir, flags: flags, brokers: amqp.NewBrokers(flags.brokerOptions()...)}
}

// follower is the route as one that follows another.
func (l *liveRoute) follower() publisher.Follower {
	return publisher.Follower{Route: l.queue, TTL: l.flags.TTL, RetryTTL: l.flags.RetryTTL, DropExpired: l.flags.dropsExpired()}
}

// coalesces reports whether later messages replace earlier ones in the route, or in one
// that follows it. There are no circles.
func (l *liveRoute) coalesces(byName map[string]*liveRoute) bool {
	if l.flags.Coalesce {
		return true
	}
	for _, name := range append([]string{l.flags.Else}, l.flags.Then...) {
		if next := byName[name]; next != nil && next.coalesces(byName) {
			return true
		}
	}
	return false
}

// name is the name of the route.
func (p *routeParts) name() string { return p.live.Load().name }

// isDone reports whether nothing is left to send, or can be at the moment.
func (p *routeParts) isDone(empty bool) bool {
	stats, err := p.queue.Stats()
	if err != nil || stats.Ready+stats.Leased == 0 && !(empty && stats.Delayed > 0) {
		return true
	}
	switch p.publisher.Stats().State {
	case publisher.Waiting, publisher.Blocked, publisher.Paused:
		return !empty // nothing goes out, and the store keeps it
	}
	return false
}
