package main

import (
	"time"

	"spoolfs/publisher"
)

// observed is what a judge knows beyond the present status.
type observed struct {
	phase       phase
	stalled     []string      // routes whose broker is there and takes nothing
	mountSilent time.Duration // since the mount was asked and should have answered; 0 if it has
	storeSilent time.Duration // the same of the store
}

// phase is a part of the daemon's life.
type phase int32

const (
	phaseStarting phase = iota // not mounted yet
	phaseServing
	phaseStopping
)

// judge watches whether a broker that is there takes messages: it sums up the
// time for which messages wait and nothing excuses that nothing becomes of them.
//
// A session that brings no verdict is replaced by the publisher before a minute is
// over, so the moments between two sessions do not begin the sum anew: only a
// verdict does, an empty queue, or an excuse that lasts as long as the limit.
type judge struct {
	limit time.Duration // of the sum

	last    time.Time // of the last status
	settled uint64    // messages of which something had become by then
	stalled time.Duration
	excused time.Duration // of the present excuse
}

// maxStep bounds what one step adds: time in which the process did not run is not
// the broker's.
const maxStep = 5 * time.Second

// observe takes the status of a moment. They come about once a second.
func (j *judge) observe(at time.Time, s status) {
	step := min(at.Sub(j.last), maxStep)
	if j.last.IsZero() {
		step = 0
	}
	settled := settledOf(s.Publisher)
	progress := settled != j.settled || s.Queue.Ready+s.Queue.Leased == 0
	j.last, j.settled = at, settled
	switch {
	case progress:
		j.stalled, j.excused = 0, 0
	case isExcused(s):
		if j.excused += step; j.excused >= j.limit {
			j.stalled = 0
		}
	default:
		j.stalled += step
		j.excused = 0
	}
}

func (j *judge) isStalled() bool { return j.stalled >= j.limit }

// settledOf counts the messages of which something has become.
func settledOf(p publisherStatus) uint64 {
	return p.ConfirmedTotal + p.ReturnedTotal + p.RejectedTotal + p.InvalidTotal + p.RefusedTotal + p.ExpiredTotal
}

// isExcused reports whether nothing has to be published at the moment. A broker
// whose host accepts connections and that says nothing on them is there, and is
// no excuse.
func isExcused(s status) bool {
	p := s.Publisher
	switch publisher.State(p.State) {
	case publisher.Paused, publisher.Blocked:
		return true
	case publisher.Waiting, publisher.Connecting:
		return publisher.Cause(p.LastCause) != publisher.Silent
	}
	// It backs off after a nack. What the rate holds back is not at the broker.
	return p.PausedSeconds > 0 || p.RateLimited && p.InFlight == 0 || s.Queue.Refusal == refusedFault
}
