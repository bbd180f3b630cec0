package queue

// content counts rows by what they hold.
type content struct{ messages, dead, partial tally }

// contentKinds are the kinds of rows of which content tells; they share the
// sequence numbers of their route.
var contentKinds = []byte{kindMessage, kindDead, kindPartial}

// of returns the tally of the rows of a kind.
func (c *content) of(kind byte) *tally {
	switch kind {
	case kindDead:
		return &c.dead
	case kindPartial:
		return &c.partial
	}
	return &c.messages
}

// addRow counts a row of the given kind.
func (c *content) addRow(kind byte, value []byte) {
	c.of(kind).add(tally{1, uint64(len(value))})
}

func (c *content) add(o content) {
	c.messages.add(o.messages)
	c.dead.add(o.dead)
	c.partial.add(o.partial)
}

func (c *content) sub(o content) {
	c.messages.sub(o.messages)
	c.dead.sub(o.dead)
	c.partial.sub(o.partial)
}

// all counts all rows.
func (c content) all() tally {
	t := c.messages
	t.add(c.dead)
	t.add(c.partial)
	return t
}
