package fs

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// serving is how many goroutines of crews there are.
func serving() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ".(*crew).serve(")
}

// untilServing waits until there are so many.
func untilServing(t *testing.T, want int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for serving() != want {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, want %d", serving(), want)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestCrew: whatever is to be done is done at once, however much waits; some
// goroutines are kept between start and end, and do what comes next.
func TestCrew(t *testing.T) {
	c := newCrew()
	all := func(n int) {
		var together, done sync.WaitGroup
		together.Add(n)
		for range n {
			done.Add(1)
			c.do(func() {
				defer done.Done()
				together.Done()
				together.Wait() // fails if one has to wait for another
			})
		}
		done.Wait()
	}
	all(10)
	untilServing(t, 0)
	c.start()
	all(3 * maxIdle)
	untilServing(t, maxIdle)
	for range 100 {
		all(maxIdle / 2)
	}
	untilServing(t, maxIdle)
	for range 2 {
		c.end()
	}
	untilServing(t, 0)
	all(10)
	untilServing(t, 0)
	c = nil
	all(1)
}
