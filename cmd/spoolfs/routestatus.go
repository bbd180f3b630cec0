package main

import (
	"errors"
	"maps"
	"slices"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// routeStatus is a route in status.json.
type routeStatus struct {
	State     string          `json:"state"`     // active or removed
	Directory string          `json:"directory"` // in the root of the mount; empty for the root
	Queue     routeQueue      `json:"queue"`
	Publisher publisherStatus `json:"publisher"` // zero for one that is removed
}

// The states of a route.
const (
	routeActive  = "active"
	routeRemoved = "removed" // it is in the store alone, and nothing of it is published
)

// routeQueue is the queue of a route.
type routeQueue struct {
	messageCounts
	Full bool `json:"full"` // it alone: its writers are refused
}

// routeDetails are what the metrics have of a route besides.
type routeDetails struct {
	confirms queue.DurationStats
	failures map[publisher.Failure]uint64
}

// measureRoutes measures all routes, and those that have been taken out of the
// configuration and still hold something.
func (d *daemon) measureRoutes(to *status) {
	to.Routes, to.details.routes = map[string]routeStatus{}, map[string]routeDetails{}
	for _, p := range d.routes.list() {
		l := p.live.Load()
		s := routeStatus{State: routeActive, Directory: l.dir, Queue: d.measureStored(p.queue)}
		// As root, for whom there is no share.
		s.Queue.Full = to.Queue.Refusal == "" && errors.Is(p.queue.Admit(0, 1, 0), queue.ErrFull)
		s.Publisher, to.details.routes[l.name] = p.measure()
		to.Routes[l.name] = s
	}
	for _, q := range d.removed() {
		to.Routes[q.Name()] = routeStatus{State: routeRemoved, Queue: d.measureStored(q)}
	}
	to.Publisher = to.Routes[defaultRoute].Publisher
}

func (d *daemon) measureStored(q *queue.Route) routeQueue {
	s, err := q.Stats()
	if err != nil {
		d.log.Error("stats", "route", q.Name(), "error", err)
	}
	return routeQueue{messageCounts: countsOf(s)}
}

// of is the status as it is for one route: with its queue and its publisher. An older
// daemon has told of no routes, and has one.
func (s status) of(route string) status {
	r, there := s.Routes[route]
	if !there && route == defaultRoute {
		return s
	}
	s.Queue.messageCounts = r.Queue.messageCounts
	s.Publisher = r.Publisher
	return s
}

// routeNames are the names of the routes, that of the root first.
func (s status) routeNames() []string {
	names := []string{defaultRoute}
	for _, name := range slices.Sorted(maps.Keys(s.Routes)) {
		if name != defaultRoute {
			names = append(names, name)
		}
	}
	return names
}

// isActive reports whether something is done for a route.
func (s status) isActive(route string) bool {
	r, there := s.Routes[route]
	return r.State == routeActive || !there && route == defaultRoute
}

// activeRoutes are the names of those in the configuration.
func (s status) activeRoutes() (names []string) {
	for _, name := range s.routeNames() {
		if s.isActive(name) {
			names = append(names, name)
		}
	}
	return names
}

// routeLines are the routes besides that of the root, for people.
func (s status) routeLines(line func(label, format string, args ...any)) {
	for _, name := range s.routeNames()[1:] {
		r := s.Routes[name]
		state := r.State
		if r.State == routeActive {
			state = r.Publisher.State + next(r.Publisher) + ", " + r.Publisher.Broker + " exchange " + r.Publisher.Exchange
		}
		line("route", "%s: %d ready, %d leased, %d delayed, %d dead; %s", name, r.Queue.Ready, r.Queue.Leased, r.Queue.Delayed, r.Queue.Dead, state)
	}
}
