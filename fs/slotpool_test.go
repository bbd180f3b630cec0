package fs

import (
	"testing"

	"spoolfs/fs/shm"
)

// newTestPool is a pool of which so many slots have been in use at a time.
func newTestPool(t *testing.T, used int) *slotPool {
	t.Helper()
	memory, err := shm.Create(shm.Options{Slots: used + 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	p := newSlotPool(memory)
	p.useAll(used)
	return p
}

// useAll takes slots, gives them back, and returns how many of them had to be
// brought into memory first.
func (p *slotPool) useAll(slots int) (brought int) {
	resident := p.residents()
	var taken []*hand
	for range slots {
		taken = append(taken, p.take(func() {}))
	}
	for _, h := range taken {
		p.give(h)
	}
	return p.residents() - resident
}

func (p *slotPool) residents() (n int) {
	for i := range p.all {
		if h := p.all[i].Load(); h != nil && h.resident {
			n++
		}
	}
	return n
}

// TestSlotPool_KeepsWhatIsNeeded: as long as requests come, however many at a
// time, no slot leaves the memory; what was not needed for a while does.
func TestSlotPool_KeepsWhatIsNeeded(t *testing.T) {
	const used, fewer = 200, 60
	p := newTestPool(t, used)
	if n := p.residents(); n != used {
		t.Fatalf("%d slots are in memory, want %d", n, used)
	}
	for range 5 {
		p.trim()
		if n := p.useAll(used); n != 0 {
			t.Errorf("%d slots were brought into memory again", n)
		}
	}
	p.trim() // of a time in which all were needed
	p.useAll(fewer)
	p.trim()
	if n, want := p.residents(), fewer+keptSlots; n != want {
		t.Errorf("%d slots are in memory, want %d for %d that are used", n, want, fewer)
	}
	for range 2 {
		p.trim()
	}
	if n := p.residents(); n != keptSlots {
		t.Errorf("%d slots are in memory, want %d", n, keptSlots)
	}
	if n := len(p.free); n != used {
		t.Errorf("%d slots are free, want %d", n, used)
	}
	if n := p.useAll(used); n != used-keptSlots {
		t.Errorf("%d slots were brought into memory, want %d", n, used-keptSlots)
	}
}
