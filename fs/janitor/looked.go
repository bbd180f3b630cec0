package janitor

import "time"

// looked is what a pass has looked at.
type looked struct {
	names uint64        // in the directories, but for our own
	took  time.Duration // to look at them, without what was taken
	taken uint64        // files that are gone
}

// next is how long the next pass will look: at what this one has left. What was
// taken, and how long that took, says nothing of it.
func (l looked) next() time.Duration {
	if l.taken >= l.names {
		return 0
	}
	return time.Duration(float64(l.took) * float64(l.names-l.taken) / float64(l.names))
}
