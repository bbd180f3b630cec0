package queue

import (
	"errors"
	"time"
)

// What is delayed is due at a time of day, which must mean the same after a restart. If
// the clock is set back, as on a node that booted with a wrong one, it would wait until the
// old time is there again, which may be a year. So it is due at once then.

// moment is what two clocks say: the one of the day, and one that nobody sets.
type moment struct {
	day   time.Time
	since time.Duration
}

// setBackBy is from how much on a clock has been set back, and not only been slowed down.
const setBackBy = 5 * time.Second

// isSetBackSince reports whether the clock of the day was set back after an earlier moment.
func (m moment) isSetBackSince(before moment) bool {
	return m.day.Sub(before.day) < m.since-before.since-setBackBy
}

// clock tells moments. The zero value is one.
type clock struct{ start time.Time }

func (c *clock) now() moment {
	if c.start.IsZero() {
		c.start = time.Now()
	}
	now := time.Now()
	return moment{now.Round(0), now.Sub(c.start)}
}

// tendClock makes ready what is delayed, if the clock was set back, and returns the present
// moment.
func (q *Queue) tendClock(before, now moment) moment {
	if !now.isSetBackSince(before) {
		return now
	}
	q.opts.Logger.Warn("the clock was set back: what is delayed is tried now",
		"by", (now.since - before.since - now.day.Sub(before.day)).Round(time.Second))
	for _, r := range q.Routes() {
		if err := r.Hasten(); errors.Is(err, ErrFault) {
			return before // once more when the store is open again
		} else if err != nil {
			q.opts.Logger.Error("clock", "route", r.Name(), "error", err)
		}
	}
	return now
}
