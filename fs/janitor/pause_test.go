package janitor

import (
	"fmt"
	"testing"
	"time"
)

// TestJanitor_Pause: a janitor comes back soon to the few files that it has left,
// however many it has taken and however long that took. Many that are left are
// looked at seldom, but before a claim that is kept looks forsaken.
func TestJanitor_Pause(t *testing.T) {
	const soon = 15 * time.Second
	for _, c := range []struct {
		taken, left   int
		looking, want time.Duration
	}{
		{0, 0, time.Second, soon},
		{200, 0, time.Hour, soon},
		{199, 1, time.Minute, soon},
		{150, 50, 8 * time.Second, 18 * time.Second},
		{0, 200, 2 * time.Second, 18 * time.Second},
		{0, 200, time.Hour, 150 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d taken, %d left, looked for %s", c.taken, c.left, c.looking), func(t *testing.T) {
			now, clock := time.Duration(0), systemClock(false)
			clock.mono = func() time.Duration { now += c.looking; return now }
			r := newRig(t, Options{ClaimTimeout: 5 * time.Minute, Interval: soon, Age: -1, clock: clock})
			r.j.opts.step = func(step string) {
				if step == "store" {
					now += time.Hour
				}
			}
			for i := range c.taken {
				r.write(fmt.Sprint("f", i), record("a"))
			}
			for i := range c.left {
				r.write(fmt.Sprint(i, ".tmp"), record("a"))
			}
			r.pass()
			if s := r.j.Stats(); s.FilesTotal != uint64(c.taken) || len(r.names()) != c.left {
				t.Fatalf("took %d files and left %d", s.FilesTotal, len(r.names()))
			}
			if got := r.j.pause(); got.Round(time.Second) != c.want {
				t.Errorf("waits for %s, want %s", got, c.want)
			}
		})
	}
}
