package scale

import (
	"slices"
	"time"
)

// result is what came of an outage. Rates are of the busiest second, times are since
// the end of the outage.
type result struct {
	PeakConnections  int
	DialsAtLoss      int // in the busiest second of the outage
	DialsAtEnd       int // in the first second after it
	DialsAfter       int // in the busiest second after it
	DialsFailed      int // after it
	PeakUnconfirmed  int // messages of all nodes, on their way
	Repeats          int // messages that the broker took more than once
	LongestConfirm   time.Duration
	First, Half, All time.Duration // until so many nodes have caught up; Limit if they have not
	Ideal            time.Duration // All, if the broker had nothing else to do
	Fairness         float64       // Jain's index of the progress, when half of the backlog is gone
}

// busiest is how many of the times are in one second.
func busiest(times []time.Duration) int {
	slices.Sort(times)
	most, from := 0, 0
	for i, at := range times {
		for at-times[from] >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// jain is the index of fairness: 1 if all have the same, 1/n if one has all.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}
