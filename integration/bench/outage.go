package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// shortBacklog is what a long one is compared with.
const shortBacklog = 10_000

// outage writes with the broker away, looks at what a long backlog costs, and
// lets the broker come back. Drains of a short backlog come before and after.
func outage(ctx context.Context, b *bench) error {
	sizes := []int{b.opts.count(100_000, 1_000_000)}
	if b.opts.full {
		sizes = append(sizes, 10_000_000)
	}
	if b.opts.large > 0 {
		sizes = []int{b.opts.large}
	}
	for _, long := range sizes {
		shorts := b.opts.turns(2, 5)
		for i := range 2 * shorts {
			if i == shorts {
				if err := b.outageOf(ctx, long, 0); err != nil {
					return err
				}
			}
			if err := b.outageOf(ctx, shortBacklog, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func messagesCase(n int) string { return fmt.Sprintf("%d messages", n) }

// outageOf is one outage. Each message is a file, unless it is a long one and the files
// are to have more.
func (b *bench) outageOf(ctx context.Context, messages, round int) (err error) {
	s, err := b.openSite(withKeeper, deadBroker, "x")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(s.store)) }()
	each := 1
	if messages > shortBacklog {
		each = max(b.opts.each, 1)
	}
	if _, err := b.write(ctx, s.dir, load{writers: 32, files: messages / each, records: each, spread: true}); err != nil {
		return err
	}
	values := map[string]float64{}
	if err := s.inspect(messages, values); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	q, err := b.queue(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := b.start(s, q.URL, q.Exchange); err != nil {
		return err
	}
	values[startSeconds] = time.Since(start).Seconds()
	if err := s.drain(ctx, messages, values); err != nil {
		return err
	}
	b.record(sample{"outage", messagesCase(messages), withKeeper, round, values})
	return nil
}

// inspect looks at a spool with a backlog.
func (s *site) inspect(messages int, values map[string]float64) error {
	err := s.server.until("done with ingesting", time.Minute, func() bool {
		st, err := s.status()
		return err != nil || st.Queue.Ready+st.Queue.Leased >= messages
	})
	if err != nil {
		return err
	}
	list := func() error { _, err := os.ReadDir(s.dir); return err }
	if values[listMS], err = medianOf(list); err != nil {
		return err
	}
	var st status
	look := func() (err error) { st, err = s.status(); return err }
	if values[statusMS], err = medianOf(look); err != nil {
		return err
	}
	values[memoryMiB], values[peakMiB] = mib(s.server.memory("VmRSS")), mib(s.server.memory("VmHWM"))
	values[storePerByte] = float64(st.Queue.StoreBytes) / float64(messages*messageSize)
	return nil
}

func mib(bytes int) float64 { return float64(bytes) / (1 << 20) }

// medianOf is how long something takes, in milliseconds.
func medianOf(do func() error) (float64, error) {
	var times []float64
	for range 21 {
		start := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		times = append(times, milliseconds(time.Since(start)))
	}
	slices.Sort(times)
	return median(times), nil
}

// drain waits until all is sent and the space is back. The rate is that between
// the first message that is seen to be confirmed and the last.
func (s *site) drain(ctx context.Context, messages int, values map[string]float64) error {
	if err := s.awaitConfirmed(ctx, 1); err != nil {
		return err
	}
	first, err := s.status()
	start := time.Now()
	if err == nil {
		err = s.awaitConfirmed(ctx, messages)
	}
	if err != nil {
		return err
	}
	if left := messages - first.Publisher.Confirmed; left > 0 {
		values[perSecond] = float64(left) / time.Since(start).Seconds()
	}
	values[peakMiB] = max(values[peakMiB], mib(s.server.memory("VmHWM")))
	return s.awaitSpace(values)
}

// smallStore is the size in bytes below which a store counts as empty again: that
// of a memory table and its log.
const smallStore = 32 << 20

// awaitSpace waits until the store is small again, for a minute at most.
func (s *site) awaitSpace(values map[string]float64) error {
	start := time.Now()
	var st status
	var last error
	err := s.server.until("small again", 2*time.Minute, func() bool {
		st, last = s.status()
		return last != nil || st.Queue.StoreBytes < smallStore || time.Since(start) > time.Minute
	})
	values[storeMiB], values[backSeconds] = mib(st.Queue.StoreBytes), time.Since(start).Seconds()
	return errors.Join(err, last)
}
