package publisher

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Follows names the routes that get a message after a route is done with it.
type Follows struct {
	Then []string // once it is confirmed
	Else string   // once it has failed for good; empty is none
}

// maxID is the length of the longest ID from the mount: that of a file, a hyphen and a
// line.
const maxID = 32 + 1 + 10

// CheckFollows refuses routes that follow each other in a circle, in which a message
// would go round for ever, those that do not exist or are named twice, which would get two
// messages of one ID, and chains at whose end the ID of a message is longer than AMQP can
// carry.
func CheckFollows(routes map[string]Follows) error {
	c := chains{routes: routes, added: map[string]int{}}
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		if err := c.walk(name, nil); err != nil {
			return err
		}
		if n := maxID + c.added[name]; n > maxShortString {
			return fmt.Errorf("behind route %q the IDs of messages get %d bytes long, AMQP takes %d: give the routes shorter names", name, n, maxShortString)
		}
	}
	return nil
}

// chains looks at each route once.
type chains struct {
	routes map[string]Follows
	added  map[string]int // the most that the names behind a route add to an ID
}

// walk looks at a route and what follows it; path is how it was come by.
func (c *chains) walk(name string, path []string) error {
	path = append(slices.Clone(path), name)
	if slices.Contains(path[:len(path)-1], name) {
		return fmt.Errorf("routes go round in a circle: %s", strings.Join(path, " > "))
	}
	if _, done := c.added[name]; done {
		return nil
	}
	most := 0
	for i, next := range c.routes[name].Then {
		if slices.Contains(c.routes[name].Then[:i], next) {
			return fmt.Errorf("route %q is followed by %q twice: name it once", name, next)
		}
	}
	for _, next := range c.next(name) {
		if _, known := c.routes[next]; !known {
			return fmt.Errorf("route %q is followed by %q, which there is not", name, next)
		}
		if err := c.walk(next, path); err != nil {
			return err
		}
		most = max(most, len("/")+len(next)+c.added[next])
	}
	c.added[name] = most
	return nil
}

// next are the routes that follow one.
func (c *chains) next(name string) []string {
	next := slices.Clone(c.routes[name].Then)
	if last := c.routes[name].Else; last != "" {
		next = append(next, last)
	}
	return next
}
