package ingest

import (
	"bytes"
	"strconv"
)

// maxNumbered bounds the memory for the arrays and objects of one record.
const maxNumbered = 1 << 20

// pyResolver rewrites values as jsonpickle would read them: {"py/set": [...]}
// and {"py/tuple": [...]} become arrays, and {"py/id": N} the Nth container of
// the record. The message is number 0; each list and each plain object counts,
// in the order of the text, and sets, tuples and references do not.
//
// It goes through all values once, in order, and copies what is referred to
// from what it has written already. So a reference can only point back, and
// nothing is recursive.
type pyResolver struct {
	out      []byte
	numbered []container
	open     []openContainer
	tags     int  // of the value at hand that are resolved
	sequence bool // the next array belongs to a set or tuple

	// reason says why the value at hand cannot be resolved. From there on
	// nobody knows which number a container has: lost.
	reason string
	lost   bool

	maxDepth, maxBytes int
}

// container is an array or object with a number: where in out it stands and how
// many it nests, itself included. While it is open, end is 0.
type container struct {
	start, end, depth int
}

// openContainer is an array or object that has begun and not ended.
type openContainer struct {
	number   int // its index in numbered, or 0 if it has none
	depth    int // of what it holds
	sequence bool
}

// resolve rewrites the values of ms, to at most maxBytes in all. What goes
// wrong in private ones does not matter, as they are not published.
func resolve(ms members, private []bool, maxDepth, maxBytes int) (reason string) {
	p := pyResolver{numbered: make([]container, 1), maxDepth: maxDepth, maxBytes: maxBytes}
	ends := make([]int, len(ms))
	for i, m := range ms {
		p.member(m)
		if p.reason != "" && !private[i] {
			return p.reason
		}
		ends[i] = len(p.out)
	}
	start := 0
	for i, end := range ends {
		ms[i].value = p.out[start:end]
		start = end
	}
	return ""
}

// member appends the value of m to out, rewritten.
func (p *pyResolver) member(m member) {
	p.open, p.tags, p.sequence, p.reason = p.open[:0], 0, false, ""
	text := m.value
	for len(text) > 0 && p.reason == "" {
		text = text[p.step(text):]
	}
	if p.reason == "" && p.tags != m.tags {
		p.fail(ReasonUnresolvable) // a tag that is not the first key of its object
	}
}

// step rewrites the beginning of text and returns how far it got.
func (p *pyResolver) step(text []byte) int {
	switch text[0] {
	case '"':
		s := scanner{text: text}
		s.str()
		p.out = append(p.out, text[:s.pos]...)
		return s.pos
	case '{':
		if tag, n := leadingTag(text); tag != "" {
			p.tags++
			return p.resolveTag(tag, text, n)
		}
		p.begin(text[0])
		return 1
	case '[':
		p.begin(text[0])
		return 1
	case '}', ']':
		return p.finish(text)
	}
	n := bytes.IndexAny(text, `"{}[]`)
	if n < 0 {
		n = len(text)
	}
	p.out = append(p.out, text[:n]...)
	return n
}

// leadingTag returns the first key of an object and the length of the text up
// to its value, if that key is a tag of jsonpickle.
func leadingTag(object []byte) (tag string, n int) {
	s := scanner{text: object, pos: 1}
	if key := s.key(); key != nil && isTag(key) {
		s.peek()
		return string(unquote(key)), s.pos
	}
	return "", 0
}

// isTag reports whether jsonpickle gives a meaning to a key.
func isTag(key []byte) bool { return bytes.HasPrefix(unquote(key), []byte("py/")) }

// resolveTag rewrites an object with a tag whose value begins at n.
func (p *pyResolver) resolveTag(tag string, object []byte, n int) int {
	switch tag {
	case "py/set", "py/tuple":
		if object[n] == '[' {
			p.sequence = true
			return n
		}
	case "py/id":
		s := scanner{text: object, pos: n}
		s.digits()
		id, err := strconv.Atoi(string(object[n:s.pos]))
		if err == nil && s.accept('}') {
			p.reference(id)
			return s.pos
		}
	}
	p.fail(ReasonUnresolvable)
	return n
}

// reference appends a copy of the container of that number.
func (p *pyResolver) reference(id int) {
	if p.lost || id >= len(p.numbered) || p.numbered[id].end == 0 {
		p.fail(ReasonUnresolvable)
		return
	}
	c := p.numbered[id]
	switch {
	case 1+len(p.open)+c.depth > p.maxDepth:
		p.fail(ReasonTooDeep)
	case len(p.out)+c.end-c.start > p.maxBytes:
		p.fail(ReasonTooLong)
	default:
		p.out = append(p.out, p.out[c.start:c.end]...)
		p.contains(c.depth)
	}
}

// contains notes that the innermost open container holds one of that depth.
func (p *pyResolver) contains(depth int) {
	if n := len(p.open); n > 0 {
		p.open[n-1].depth = max(p.open[n-1].depth, depth)
	}
}

// begin appends an opening bracket.
func (p *pyResolver) begin(bracket byte) {
	o := openContainer{sequence: p.sequence}
	p.sequence = false
	if !o.sequence {
		if len(p.numbered) == maxNumbered {
			p.fail(ReasonUnresolvable)
			return
		}
		o.number = len(p.numbered)
		p.numbered = append(p.numbered, container{start: len(p.out)})
	}
	p.open = append(p.open, o)
	p.out = append(p.out, bracket)
}

// finish appends the closing bracket at the beginning of text, without that of
// the object around a set or tuple.
func (p *pyResolver) finish(text []byte) int {
	last := len(p.open) - 1
	o := p.open[last]
	p.open = p.open[:last]
	p.out = append(p.out, text[0])
	p.contains(o.depth + 1)
	if !o.sequence {
		c := &p.numbered[o.number]
		c.end, c.depth = len(p.out), o.depth+1
		return 1
	}
	s := scanner{text: text, pos: 1}
	if !s.accept('}') {
		p.fail(ReasonUnresolvable)
	}
	return s.pos
}

func (p *pyResolver) fail(reason string) {
	p.reason, p.lost = reason, true
}
