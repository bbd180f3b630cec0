package queue

import "errors"

// StoreStats is a snapshot of the store as a whole, which belongs to no route.
type StoreStats struct {
	// Refusal is why the queue takes nothing from anybody at the moment: ErrFull,
	// ErrDiskFull, ErrFault or ErrClosed; nil while it does.
	Refusal error

	DiskBytes     uint64 // that the database takes on the disk; 0 while it is parked
	DiskFreeBytes uint64 // of the file system; 0 if that cannot be told
	LimitBytes    uint64 // of stored records, see Limits
	FaultsTotal   uint64 // how often it has failed and was opened again

	// LateTotal counts messages that lost their place to later ones (G6), since
	// they were committed longer than [Options.CommitGrace] after their Put: their
	// writer went on, or the machine stood still.
	LateTotal uint64

	// Syncs is how long the disk took to make writes durable. Those that share a
	// sync count once.
	Syncs DurationStats
}

// Store returns the numbers of the store. Its cost does not depend on the number
// of messages, and it waits for nothing but the question how much of the disk is
// free.
func (q *Queue) Store() StoreStats {
	s := StoreStats{Refusal: q.admit(0, tally{1, 0}), Syncs: q.opts.syncs.Stats()}
	if free, known := q.freeDisk(); known {
		s.DiskFreeBytes = free
	}
	q.mu.Lock()
	s.LimitBytes, s.FaultsTotal, s.LateTotal = q.limits.Bytes, q.parks, q.late
	q.mu.Unlock()
	if q.begin() == nil {
		defer q.end()
		s.DiskBytes = q.engine.db.Metrics().DiskSpaceUsage()
	}
	return s
}

// Probe writes a little to the store and returns when it is on stable storage, or
// when the queue says why that cannot be: an error is an answer as well. What it
// writes is there already, the counters of a route. A disk that does not answer
// holds it up.
func (q *Queue) Probe() error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.end()
	w, err := q.submitProbe()
	return q.await(w, err)
}

func (q *Queue) submitProbe() (*write, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.routes {
		// Synced: it is the sync that is wanted.
		return q.submitLocked(q.engine.db.NewBatch(), true, r), nil
	}
	return nil, errNoRoute
}

// errNoRoute says that there is nothing yet that Probe could write.
var errNoRoute = errors.New("the store has no route yet")
