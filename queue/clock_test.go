package queue

import (
	"testing"
	"time"
)

func TestMoment_SetBack(t *testing.T) {
	noon := moment{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), time.Hour}
	later := func(day, since time.Duration) moment { return moment{noon.day.Add(day), noon.since + since} }
	for _, tt := range []struct {
		name       string
		day, since time.Duration
		want       bool
	}{
		{"a second", time.Second, time.Second, false},
		{"slowed down", time.Second, 2 * time.Second, false},
		{"forward", time.Hour, time.Second, false},
		{"the process was stopped", time.Hour, time.Hour, false},
		{"back", -time.Hour, time.Second, true},
		{"back less than it was stopped for", time.Minute, time.Hour, true},
	} {
		if got := later(tt.day, tt.since).isSetBackSince(noon); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestQueue_ClockSetBack: what is delayed does not wait for a time that is there again in a
// year.
func TestQueue_ClockSetBack(t *testing.T) {
	q, r := openQueue(t, Options{})
	commit(t, putStage(t, r, 2))
	for _, l := range leaseAll(t, r, 2) {
		if err := r.Nack(l, time.Now().AddDate(1, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	var c clock
	before := c.now()
	if now := q.tendClock(before, moment{before.day.Add(time.Second), before.since + time.Second}); now.since != before.since+time.Second {
		t.Errorf("a second later it is %+v", now)
	}
	if s, err := r.Stats(); err != nil || s.Delayed != 2 {
		t.Errorf("a second later: %+v, %v", s, err)
	}
	q.tendClock(before, moment{before.day.AddDate(-1, 0, 0), before.since + time.Second})
	leaseAll(t, r, 2)
	checkScan(t, r)
}
