package publisher

import (
	"time"

	"spoolfs/queue"
)

// flights is what is in flight, in the order of publishing. Tags are its
// consecutive numbers.
type flights struct {
	base  uint64 // tag of list[0]
	list  []flight
	count int
	empty chan struct{} // closed when count gets to 0; nil if nobody waits
}

// flight is one message; without a lease it has landed.
type flight struct {
	lease *queue.Lease
	at    time.Time

	// handing is set while the session is being given the message, which takes
	// as long as the network is slow and the message is large.
	handing bool
}

func (f *flights) len() int { return f.count }

func (f *flights) takeOff(l *queue.Lease, now time.Time) uint64 {
	f.list = append(f.list, flight{lease: l, at: now, handing: len(l.Body) >= largeBody})
	f.count++
	return f.base + uint64(len(f.list)) - 1
}

// largeBody is from how many bytes on it is noted when the session has a message:
// less is given in no time.
const largeBody = 64 << 10

// handed says that the session has a message with a large body: from now on its
// verdict is waited for.
func (f *flights) handed(tag uint64, now time.Time) {
	if i := tag - f.base; tag >= f.base && i < uint64(len(f.list)) {
		f.list[i].at, f.list[i].handing = now, false
	}
}

// land removes a message and returns it, without a lease if the tag is not in
// flight.
func (f *flights) land(tag uint64) flight {
	i := tag - f.base
	if tag < f.base || i >= uint64(len(f.list)) {
		return flight{}
	}
	landed := f.list[i]
	if landed.lease == nil {
		return landed
	}
	f.list[i].lease = nil
	f.count--
	n := 0
	for n < len(f.list) && f.list[n].lease == nil {
		n++
	}
	f.list = f.list[n:]
	f.base += uint64(n)
	if f.count == 0 && f.empty != nil {
		close(f.empty)
		f.empty = nil
	}
	return landed
}

// oldest is since when the oldest message has been in flight; now if none is.
func (f *flights) oldest(now time.Time) time.Time {
	if len(f.list) == 0 || f.list[0].handing {
		return now
	}
	return f.list[0].at
}

// landed returns a channel that is closed when nothing is in flight.
func (f *flights) landed() <-chan struct{} {
	c := make(chan struct{})
	if f.count == 0 {
		close(c)
	} else {
		f.empty = c
	}
	return c
}

// overdue returns those messages in flight that have been so since before a time.
func (f *flights) overdue(before time.Time) []*queue.Lease {
	var late []*queue.Lease
	for _, e := range f.list {
		if e.lease != nil && !e.handing && e.at.Before(before) {
			late = append(late, e.lease)
		}
	}
	return late
}

// all returns the messages in flight.
func (f *flights) all() []*queue.Lease {
	var left []*queue.Lease
	for _, e := range f.list {
		if e.lease != nil {
			left = append(left, e.lease)
		}
	}
	return left
}
