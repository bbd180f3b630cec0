package scale

import (
	"time"
)

// score is what the broker has seen since it is up. Its mutex guards it.
type score struct {
	peakConnections, peakUnconfirmed int
	repeats                          int
	longest                          time.Duration
	owed                             int // messages of the outage, of all nodes
	paid                             int // of these, confirmed
	caught                           []time.Duration
	fairness                         float64
	nodes                            []*node
	since                            time.Time
	done                             chan struct{}
}

// begin has the score count a backlog.
func (c *score) begin(nodes []*node, done chan struct{}) {
	c.nodes, c.since, c.done, c.fairness = nodes, time.Now(), done, 1
	for _, n := range nodes {
		n.owed = n.made() - n.confirmed
		n.paid = 0
		c.owed += n.owed
	}
}

// count takes note of a message that the broker is done with.
func (c *score) count(m item) {
	n := m.session.node
	if m.number <= n.worked {
		c.repeats++
	}
	n.worked = max(n.worked, m.number)
	if m.session.closed {
		return
	}
	c.longest = max(c.longest, time.Since(m.at))
	n.confirmed = m.number
	if n.paid == n.owed {
		return
	}
	n.paid++
	c.paid++
	if n.paid == n.owed {
		c.caught = append(c.caught, time.Since(c.since))
	}
	if c.paid == c.owed/2 {
		c.fairness = c.fair()
	}
	if c.paid == c.owed {
		close(c.done)
	}
}

// fair is how evenly the nodes have got on.
func (c *score) fair() float64 {
	shares := make([]float64, len(c.nodes))
	for i, n := range c.nodes {
		if n.owed > 0 {
			shares[i] = float64(n.paid) / float64(n.owed)
		}
	}
	return jain(shares)
}

// until is how long it took until so many nodes had caught up.
func (c *score) until(nodes int, limit time.Duration) time.Duration {
	if len(c.caught) < nodes {
		return limit
	}
	return c.caught[max(0, nodes-1)]
}
