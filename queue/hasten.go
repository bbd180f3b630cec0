package queue

import (
	"fmt"
	"math"
	"time"
)

// Hasten makes what is delayed now ready, in batches that let others in between.
// Not synced: what is lost of it is delayed again.
func (r *Route) Hasten() error {
	r.q.mu.Lock()
	left := r.count.delayed.count
	r.q.mu.Unlock()
	// What is delayed anew meanwhile is due last.
	for ; left > 0; left -= min(left, pageSize) {
		if err := r.hastenPage(); err != nil {
			return fmt.Errorf("hasten route %q: %w", r.Name(), err)
		}
		r.signal()
	}
	return nil
}

func (r *Route) hastenPage() error {
	if err := r.q.begin(); err != nil {
		return err
	}
	defer r.q.end()
	r.leasing.Lock()
	defer r.leasing.Unlock()
	return r.promote(time.Unix(0, math.MaxInt64), pageSize)
}
