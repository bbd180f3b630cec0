package keeper

import (
	"testing"
	"time"

	"spoolfs/fs/shm"
)

// TestJudge_Hung proves K2: a request that is seen in hand time and again without
// progress is hung. One that waits for the disk is not, nor one that goes on, nor
// one after the other in the same slot.
func TestJudge_Hung(t *testing.T) {
	at := func(unique uint64, slot int, began time.Duration, waits bool) shm.Request {
		return shm.Request{Unique: unique, Slot: slot, Began: began, Waits: waits}
	}
	for _, tt := range []struct {
		name string
		see  func(look int) shm.Request
		hung bool
	}{
		{"no progress", func(int) shm.Request { return at(2, 0, 1, false) }, true},
		{"waits for the disk", func(int) shm.Request { return at(2, 0, 1, true) }, false},
		{"waits now and then", func(i int) shm.Request { return at(2, 0, 1, i%sightings == 0) }, false},
		{"goes on after the disk", func(i int) shm.Request { return at(2, 0, time.Duration(i/sightings), false) }, false},
		{"one after the other", func(i int) shm.Request { return at(uint64(i/sightings), 0, 1, false) }, false},
		{"again in another slot", func(i int) shm.Request { return at(2, i/sightings, 1, false) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := newJudge()
			hungAt := 0
			for i := range 5 * sightings {
				if hung := j.look([]shm.Request{tt.see(i), at(99, 7, time.Duration(i), false)}); len(hung) > 0 && hungAt == 0 {
					hungAt = i
					if hung[0].Unique != 2 || len(hung) != 1 {
						t.Errorf("hung: %v", hung)
					}
				}
			}
			if (hungAt > 0) != tt.hung {
				t.Errorf("hung at look %d", hungAt)
			}
			if tt.hung && hungAt != sightings {
				t.Errorf("hung at look %d, want %d", hungAt, sightings)
			}
		})
	}
}

// TestJudge_Poison proves K3: three deaths are enough, and who was only there is
// not refused.
func TestJudge_Poison(t *testing.T) {
	poison := func(began time.Duration) shm.Request { return shm.Request{Unique: 8, Began: began} }
	other := shm.Request{Unique: 10, Began: 5}
	j := newJudge()
	if got := j.died([]shm.Request{poison(9), other}, false); len(got) > 0 || !j.suspects() {
		t.Fatalf("after the first death: %v", got)
	}
	if got := j.died([]shm.Request{other, poison(9)}, true); len(got) > 0 {
		t.Fatalf("after the second death: %v", got)
	}
	got := j.died([]shm.Request{poison(9), other}, true)
	if len(got) != 1 || got[0].Unique != 8 {
		t.Fatalf("after the third death: %v", got)
	}
	if !j.suspects() {
		t.Error("the other one is acquitted too early")
	}
	j.acquit()
	if j.suspects() {
		t.Error("the other one is not acquitted")
	}
}

// TestPause proves K1: no pause after the first death, and none that grows without
// end.
func TestPause(t *testing.T) {
	for deaths, want := range map[int]time.Duration{
		0: 0, 1: 0, 2: firstPause, 3: 2 * firstPause, 4: 4 * firstPause, 20: maxPause, 1 << 40: maxPause,
	} {
		if got := pause(deaths); got != want {
			t.Errorf("after %d deaths: %s, want %s", deaths, got, want)
		}
	}
}
