package publisher

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// aWindow has pauses without chance: the shortest.
func aWindow(most int) *window {
	opts := Options{Window: most, WindowBytes: 1 << 20, ConfirmTimeout: 30 * time.Second}
	return newWindow(&opts, backoff{
		min: 250 * time.Millisecond, max: 30 * time.Second,
		jitter: func(time.Duration) time.Duration { return 0 },
	})
}

// TestWindow_Rejected proves P7: each nack halves the window, the first and
// each that follows a pause begins a longer one, and confirms bring both back.
func TestWindow_Rejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := aWindow(16)
		if n := w.acquire(t.Context(), 100); n != 16 {
			t.Fatalf("took %d, want 16", n)
		}
		sent := time.Now()
		time.Sleep(time.Millisecond)
		for range 16 {
			if until := w.rejected(sent, 0); time.Until(until) != 250*time.Millisecond {
				t.Fatalf("tried again in %s", time.Until(until))
			}
		}
		w.release(16)
		var pauses []time.Duration
		for range 9 {
			start := time.Now()
			if n := w.acquire(t.Context(), 100); n != 1 {
				t.Fatalf("took %d, want 1", n)
			}
			pauses = append(pauses, time.Since(start))
			w.rejected(time.Now(), 0)
			w.release(1)
		}
		want := "[250ms 500ms 1s 2s 4s 8s 16s 30s 30s]"
		if got := fmt.Sprint(pauses); got != want {
			t.Errorf("pauses are %s, want %s", got, want)
		}
		w.acquire(t.Context(), 1)
		w.confirmed(3, time.Now())
		w.confirmed(4, sent) // was on its way before the pause
		if n, _ := w.size(); n != 4 {
			t.Errorf("after three confirms the window is %d, want 4", n)
		}
		if n, _ := w.take(100); n != 1 {
			t.Errorf("took %d while the window is low, want one at a time", n)
		}
		if until := w.rejected(time.Now(), 0); time.Until(until) != 250*time.Millisecond {
			t.Errorf("the pause after a confirm is %s", time.Until(until))
		}
	})
}

// TestWindow_RefusedOnItsOwn: a message that is refused though others are not
// waits longer each time, and the others do not.
func TestWindow_RefusedOnItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := aWindow(16)
		time.Sleep(time.Millisecond)
		if until := w.rejected(time.Now(), 6); time.Until(until) != 8*time.Second {
			t.Errorf("tried again in %s, want 8s", time.Until(until))
		}
		start := time.Now()
		if w.acquire(t.Context(), 1); time.Since(start) != 250*time.Millisecond {
			t.Errorf("the others waited %s", time.Since(start))
		}
	})
}

// TestWindow_Suspects: one message at a time while there are suspects.
func TestWindow_Suspects(t *testing.T) {
	w := aWindow(16)
	w.suspect(3)
	for _, want := range []int{1, 1, 1, 16} {
		if n, _ := w.take(100); n != want {
			t.Fatalf("took %d, want %d", n, want)
		}
		if n, _ := w.take(100); n != 0 {
			t.Fatalf("took %d more", n)
		}
		w.release(want)
		w.acquit(1)
	}
}

// TestWatchdog: what time counts, and for what (B3, B4).
func TestWatchdog(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	w := watchdog{confirm: 30 * time.Second, blocked: 600 * time.Second}
	for _, step := range []struct {
		now, oldest int
		blocked     string
		want        Cause
	}{
		{30, 0, "", ""},
		{31, 0, "", Silent},
		{31, 5, "low on memory", ""},
		{631, 5, "low on memory", ""},
		{632, 632, "low on memory", AlarmedBroker}, // also with nothing in flight
		{633, 5, "", ""},                           // the block ends: a new start
		{663, 5, "", ""},
		{664, 5, "", Silent},
	} {
		err := w.check(at(step.now), at(step.oldest), step.blocked)
		if (err == nil) != (step.want == "") || err != nil && faultOf(err).Cause != step.want {
			t.Errorf("after %d s: got %v, want %q", step.now, err, step.want)
		}
	}
}

// TestPace proves P9.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(100, 10*time.Second)
		count := func(d time.Duration) (n int) {
			for end := time.Now().Add(d); ; n++ {
				if err := p.wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if time.Now().After(end) {
					return n
				}
			}
		}
		count(time.Second) // takes the burst
		if n := count(10 * time.Second); n < 990 || n > 1010 {
			t.Errorf("%d messages in 10 s, want 1000", n)
		}
		p.restart()
		var ramp []int
		for range 12 {
			ramp = append(ramp, count(time.Second))
		}
		if ramp[0] > 20 || ramp[5] < 45 || ramp[5] > 65 || ramp[11] < 98 {
			t.Errorf("messages by second after an outage: %d", ramp)
		}
		if n := newPace(0, 0).burst(); n != leaseBatch {
			t.Errorf("without a limit the burst is %d", n)
		}
	})
}

// TestWindow_Hold: a bound holds besides the limit, and does not have messages go one by
// one.
func TestWindow_Hold(t *testing.T) {
	w := aWindow(16)
	w.hold(4)
	if n, _ := w.take(3); n != 3 {
		t.Errorf("took %d, want 3", n)
	}
	if n, _ := w.take(100); n != 1 {
		t.Errorf("took %d more, want 1", n)
	}
	if n, _ := w.take(100); n != 0 {
		t.Errorf("took %d beyond the bound", n)
	}
	w.hold(0)
	if n, _ := w.take(100); n != 12 {
		t.Errorf("took %d without it, want 12", n)
	}
}
