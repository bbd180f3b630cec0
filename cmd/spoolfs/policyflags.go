package main

import (
	"time"

	"github.com/alecthomas/units"

	"spoolfs/publisher"
	"spoolfs/queue"
)

// policyFlags say in which order the messages of a route go, what happens when they are
// many, and how often one is tried.
type policyFlags struct {
	Order         string           `default:"fifo" enum:"fifo,newest-first" help:"In which order messages go: that in which they were closed (fifo), or the file that was closed last first, for consumers that prefer fresh data while a backlog drains (newest-first) (${default})."`
	OnFull        string           `default:"reject" enum:"reject,drop-oldest,drop-newest" help:"What happens when the route or the store is full: writers get ENOSPC (reject), the oldest messages that wait are dropped (drop-oldest), or what comes is (drop-newest). Each that is dropped is counted (${default})."`
	Coalesce      bool             `help:"Replace a message that waits by a later one of the same user about the same: the baseUrl and relPath of a record, the path of a raw file, the subject of an amqp line. Each that is replaced is counted."`
	RouteShare    float64          `placeholder:"PART" help:"Part of --max-bytes and --max-messages that the route may fill (all of it; half of it if it drops)."`
	RouteBytes    units.Base2Bytes `placeholder:"SIZE" help:"Size of the messages that the route may hold, if that is less (no limit)."`
	RouteMessages uint64           `placeholder:"N" help:"Messages that the route may hold, if that is less (no limit)."`

	Retries    int           `default:"-1" placeholder:"N" help:"How often a message is tried again that the broker refuses, before it has failed for good; attempts without an answer do not count. -1 is for ever (${default})."`
	BackoffMin time.Duration `default:"250ms" help:"First wait before a broker is tried again; each is up to twice as long as the one before (${default})."`
	BackoffMax time.Duration `default:"30s" help:"Longest such wait (${default})."`
	Workers    int           `default:"1" placeholder:"N" help:"Connections that publish at the same time. With more than one, messages are not in order (${default})."`
}

// check refuses what the queue or the publisher would.
func (f *policyFlags) check() error {
	if err := f.queueOptions().Validate(); err != nil {
		return badSetting("route_share", "%v", err)
	}
	switch {
	case f.RouteBytes < 0:
		return badSetting("route_bytes", "want 0 or more")
	case f.Retries < -1:
		return badSetting("retries", "want a number, or -1 for no limit, not %d", f.Retries)
	case f.Workers < 1 || f.Workers > publisher.MaxWorkers:
		return badSetting("workers", "want 1 to %d, not %d", publisher.MaxWorkers, f.Workers)
	case f.BackoffMax < f.BackoffMin:
		return badSetting("backoff_max", "want no less than backoff_min, which is %s", f.BackoffMin)
	}
	return wantMore("backoff_min", f.BackoffMin)
}

// queueOptions are those of the route in the store.
func (f *policyFlags) queueOptions() queue.RouteOptions {
	return queue.RouteOptions{
		Order: queue.Order(f.Order), OnFull: queue.OnFull(f.OnFull),
		Share: f.RouteShare, Bytes: uint64(f.RouteBytes), Messages: f.RouteMessages, Coalesce: f.Coalesce,
	}
}

// publisherOptions sets those of its publisher.
func (f *policyFlags) publisherOptions(o *publisher.Options) {
	o.MaxAttempts = f.Retries + 1
	o.RetryMin, o.RetryMax, o.Workers = f.BackoffMin, f.BackoffMax, f.Workers
}
