package keeper

import (
	"slices"

	"spoolfs/fs/shm"
)

const (
	// sightings is how often a request is seen in hand, without any progress,
	// before its worker is taken for hung. They are counted and not timed, since
	// the keeper itself may have been stopped.
	sightings = 10

	// fatal is how many workers a request may cost.
	fatal = 3
)

// judge finds out which requests workers hang at and die of.
type judge struct {
	seen   map[uint64]sighting
	deaths map[uint64]int // by unique
}

// sighting is a request that was in hand when somebody looked.
type sighting struct {
	request shm.Request
	times   int
}

func newJudge() *judge {
	return &judge{seen: map[uint64]sighting{}, deaths: map[uint64]int{}}
}

// look takes what is in hand now, and returns what the worker hangs at.
func (j *judge) look(inHand []shm.Request) (hung []shm.Request) {
	seen := make(map[uint64]sighting, len(inHand))
	for _, r := range inHand {
		if r.Waits || r.Began == 0 { // for the disk, or for its turn
			continue
		}
		s := sighting{r, 1}
		// One that was read again or has waited for the disk began anew.
		if last, ok := j.seen[r.Unique]; ok && last.request.Began == r.Began && last.request.Slot == r.Slot {
			s.times = last.times + 1
		}
		seen[r.Unique] = s
		if s.times > sightings {
			hung = append(hung, r)
		}
	}
	j.seen = seen
	return hung
}

// died takes what a worker had in hand when it died of its own making, and
// returns what has cost too many workers. If one request was handled at a time,
// the last is the culprit.
func (j *judge) died(inHand []shm.Request, oneAtATime bool) (poison []shm.Request) {
	if oneAtATime && len(inHand) > 1 {
		// Those that wait for their turn have not begun.
		last := slices.MaxFunc(inHand, func(a, b shm.Request) int { return int(a.Began - b.Began) })
		inHand = []shm.Request{last}
	}
	for _, r := range inHand {
		j.deaths[r.Unique]++
		if j.deaths[r.Unique] >= fatal {
			poison = append(poison, r)
			delete(j.deaths, r.Unique)
		}
	}
	return poison
}

// forget begins anew with another worker.
func (j *judge) forget() { clear(j.seen) }

// acquit forgets what was suspected.
func (j *judge) acquit() { clear(j.deaths) }

// suspects reports whether there is anything to be careful about.
func (j *judge) suspects() bool { return len(j.deaths) > 0 }
