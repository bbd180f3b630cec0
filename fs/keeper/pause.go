package keeper

import "time"

const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second

	// proven is how long a worker has to serve before it is not to blame for the
	// deaths of former ones.
	proven = 10 * time.Second
)

// pause is how long to wait after deaths of workers' own making in a row: nothing
// after the first.
func pause(deaths int) time.Duration {
	if deaths <= 1 {
		return 0
	}
	return min(firstPause<<min(deaths-2, 10), maxPause)
}
