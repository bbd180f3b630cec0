package queue

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// Limits bound what a queue takes. What is stored already stays whatever they
// are, and leaves as it would have.
type Limits struct {
	// Bytes is how many bytes of records may be stored. Default half of the
	// file system.
	Bytes uint64

	// Messages is how many messages may be stored, dead letters included.
	// Default none.
	Messages uint64

	// UserShare is the part of both that one user may fill; root may fill all.
	// Default 0.5.
	UserShare float64

	// FreeFloor is how many bytes the file system keeps free, so that there is
	// room to publish and to delete. Default min(64 MiB, 1/16 of it).
	FreeFloor uint64

	// Ballast is the size in bytes of a file that is given up when the disk is
	// full all the same, since somebody else filled it. Opening the store takes
	// up to 24 MiB then, as what was in memory tables becomes tables on disk.
	// Default as FreeFloor, but at least 32 MiB or 1/4 of a smaller file system.
	Ballast uint64
}

const (
	defaultFloor     = 64 << 20
	smallBallast     = 32 << 20
	defaultUserShare = 0.5
)

// ensureDefaults fills in what depends on the file system.
func (l *Limits) ensureDefaults(total uint64) {
	small := min(defaultFloor, total/16)
	if l.Bytes == 0 {
		l.Bytes = total / 2
	}
	if l.UserShare == 0 {
		l.UserShare = defaultUserShare
	}
	if l.FreeFloor == 0 {
		l.FreeFloor = small
	}
	if l.Ballast == 0 {
		l.Ballast = max(small, min(total/4, smallBallast))
	}
}

// SetLimits changes what the queue takes from now on: Bytes, Messages and
// UserShare. What is kept free stays as it was.
func (q *Queue) SetLimits(l Limits) {
	l.ensureDefaults(q.totalDisk())
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limits.Bytes, q.limits.Messages, q.limits.UserShare = l.Bytes, l.Messages, l.UserShare
}

// totalDisk is the size of the file system, in bytes.
func (q *Queue) totalDisk() uint64 {
	if u, err := q.opts.FS.GetDiskUsage(q.dir); err == nil {
		return u.TotalBytes
	}
	return math.MaxUint64
}

// Space is how much a queue holds and may still take, in bytes.
type Space struct{ Used, Free uint64 }

// Space returns what a user of df wants to know.
func (r *Route) Space() Space { return r.q.Space() }

// Space returns what a user of df wants to know.
func (q *Queue) Space() Space {
	free, known := q.freeDisk()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Space{Used: q.stored.bytes}
	if q.limits.Bytes > s.Used {
		s.Free = q.limits.Bytes - s.Used
	}
	if known {
		s.Free = min(s.Free, free-min(free, q.limits.FreeFloor))
	}
	return s
}

// Admit says whether the queue would take more from a user: so many messages
// with so many bytes of records in all. A writer is asked early, so that it is
// refused at its open or write and not at its close.
//
// Errors: ErrFull (of the store or of the route), ErrUserShare, ErrDiskFull, ErrFault,
// ErrClosed.
func (r *Route) Admit(uid uint32, messages, bytes uint64) error {
	return r.admit(uid, tally{messages, bytes})
}

func (r *Route) admit(uid uint32, more tally) error {
	free, known := r.q.freeDisk()
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	return r.judgeLocked(more, r.q.admitLocked(uid, more, diskRoom{free, known}))
}

// isLimit reports whether an error is about what a queue may hold, and not about what
// it can.
func isLimit(err error) bool {
	return errors.Is(err, ErrUserShare) || errors.Is(err, ErrFull)
}

func (q *Queue) admit(uid uint32, more tally) error {
	free, known := q.freeDisk()
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.admitLocked(uid, more, diskRoom{free, known})
}

// diskRoom is how many bytes of the disk are free, if that is known.
type diskRoom struct {
	free  uint64
	known bool
}

func (q *Queue) admitLocked(uid uint32, more tally, disk diskRoom) error {
	l := &q.limits
	switch {
	case q.closed:
		return ErrClosed
	case q.parked != nil:
		return q.parked
	case disk.known && disk.free < l.FreeFloor+more.bytes:
		return fmt.Errorf("%w: %d bytes are free, %d are kept free", ErrDiskFull, disk.free, l.FreeFloor)
	case over(q.stored, more, l.Bytes, l.Messages, 1):
		return fmt.Errorf("%w: %d messages of %d bytes are stored", ErrFull, q.stored.count, q.stored.bytes)
	case uid != 0 && over(q.users[uid], more, l.Bytes, l.Messages, l.UserShare):
		return fmt.Errorf("%w: user %d has %d messages of %d bytes", ErrUserShare, uid, q.users[uid].count, q.users[uid].bytes)
	}
	return nil
}

// over reports whether more does not fit into a share of the limits. A limit of
// 0 messages is none.
func over(have, more tally, bytes, messages uint64, share float64) bool {
	full := func(have, more, limit uint64) bool {
		return float64(have+more) > float64(limit)*share || have >= limit
	}
	return full(have.bytes, more.bytes, bytes) || messages != 0 && full(have.count, more.count, messages)
}

// freeDisk says how many bytes are free, as of at most freeTrust ago. Where the
// file system cannot tell, as in memory, there is no floor.
func (q *Queue) freeDisk() (free uint64, known bool) {
	q.free.mu.Lock()
	defer q.free.mu.Unlock()
	if now := time.Now(); now.Sub(q.free.asked) > freeTrust {
		u, err := q.opts.FS.GetDiskUsage(q.dir)
		q.free.asked, q.free.bytes, q.free.known = now, u.AvailBytes, err == nil
	}
	return q.free.bytes, q.free.known
}

// freeTrust is how long an answer of the file system is believed. To ask for each
// message took a fifth of the time of a busy queue; in 10 ms no disk writes as
// much as the floor, and what it does not tell is found out by the write.
const freeTrust = 10 * time.Millisecond

// freeSpace is the last answer of the file system.
type freeSpace struct {
	mu    sync.Mutex
	asked time.Time
	bytes uint64
	known bool
}

// isFull reports whether an error says that the disk is full.
func isFull(err error) bool { return errors.Is(err, errNoSpace) || errors.Is(err, errQuota) }
