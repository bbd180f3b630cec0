package ingest

import "bytes"

// scanner reads JSON text and finds where values begin and end. It accepts what
// encoding/json accepts, but within a limit of nesting, and without recursion.
// Text must not hold NUL bytes.
//
// Its methods return the reason to refuse the text, or "", or false.
type scanner struct {
	text     []byte
	pos      int
	open     []byte // the closing byte of each array and object around pos
	maxDepth int    // of open
	tags     int    // how many keys began with "py/"
}

func (s *scanner) reset(text []byte) {
	s.text, s.pos, s.open, s.tags = text, 0, s.open[:0], 0
}

// peek returns the next byte that is not white space, or 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// atEnd reports whether only white space is left.
func (s *scanner) atEnd() bool {
	s.peek()
	return s.pos == len(s.text)
}

// accept passes over c if it comes next.
func (s *scanner) accept(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// object reads an object and calls visit with each member.
func (s *scanner) object(visit func(member) string) string {
	if reason := s.push(); reason != "" {
		return reason
	}
	if s.pop() {
		return ""
	}
	for {
		m, reason := s.member()
		if reason != "" {
			return reason
		}
		if reason := visit(m); reason != "" {
			return reason
		}
		if s.pop() {
			return ""
		}
		if !s.accept(',') {
			return ReasonNotJSON
		}
	}
}

// array reads an array and calls visit with the text of each element.
func (s *scanner) array(visit func([]byte) string) string {
	if reason := s.push(); reason != "" {
		return reason
	}
	if s.pop() {
		return ""
	}
	for {
		s.peek()
		start := s.pos
		if reason := s.value(); reason != "" {
			return reason
		}
		if reason := visit(s.text[start:s.pos]); reason != "" {
			return reason
		}
		if s.pop() {
			return ""
		}
		if !s.accept(',') {
			return ReasonNotJSON
		}
	}
}

// member reads a key and its value.
func (s *scanner) member() (m member, reason string) {
	if m.key = s.key(); m.key == nil {
		return m, ReasonNotJSON
	}
	m.name = unquote(m.key)
	s.peek()
	start, tags := s.pos, s.tags
	reason = s.value()
	m.value, m.tags = s.text[start:s.pos], s.tags-tags
	return m, reason
}

// value passes over one value of any kind.
func (s *scanner) value() string {
	base := len(s.open)
	for {
		if reason := s.begin(); reason != "" {
			return reason
		}
		for len(s.open) > base && s.pop() {
		}
		if len(s.open) == base {
			return ""
		}
		if !s.accept(',') || s.inObject() && s.key() == nil {
			return ReasonNotJSON
		}
	}
}

// begin passes over the opening brackets of a value and the first scalar or
// empty bracket within.
func (s *scanner) begin() string {
	for {
		switch c := s.peek(); c {
		case '{', '[':
			if reason := s.push(); reason != "" {
				return reason
			}
			if s.pop() {
				return ""
			}
			if c == '{' && s.key() == nil {
				return ReasonNotJSON
			}
		default:
			if !s.scalar(c) {
				return ReasonNotJSON
			}
			return ""
		}
	}
}

// push enters the array or object that begins at pos.
func (s *scanner) push() string {
	if len(s.open) == s.maxDepth {
		return ReasonTooDeep
	}
	// In ASCII the closing bracket follows the opening one by two.
	s.open = append(s.open, s.text[s.pos]+2)
	s.pos++
	return ""
}

// pop leaves the innermost array or object if it ends here.
func (s *scanner) pop() bool {
	if !s.accept(s.open[len(s.open)-1]) {
		return false
	}
	s.open = s.open[:len(s.open)-1]
	return true
}

func (s *scanner) inObject() bool { return s.open[len(s.open)-1] == '}' }

// key passes over a key and its colon. It returns the key with its quotes, or
// nil.
func (s *scanner) key() []byte {
	if s.peek() != '"' {
		return nil
	}
	start := s.pos
	if !s.str() {
		return nil
	}
	key := s.text[start:s.pos]
	if !s.accept(':') {
		return nil
	}
	if isTag(key) {
		s.tags++
	}
	return key
}

// scalar passes over a value that begins with c and is no array or object.
func (s *scanner) scalar(c byte) bool {
	switch c {
	case '"':
		return s.str()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *scanner) literal(word string) bool {
	if !bytes.HasPrefix(s.text[s.pos:], []byte(word)) {
		return false
	}
	s.pos += len(word)
	return true
}

// str passes over a string.
func (s *scanner) str() bool {
	text, i := s.text, s.pos+1
	for i < len(text) {
		switch c := text[i]; {
		case c == '"':
			s.pos = i + 1
			return true
		case c == '\\':
			n := escapeLen(text[i:])
			if n == 0 {
				return false
			}
			i += n
		case c < ' ':
			return false
		default:
			i++
		}
	}
	return false
}

// escapeLen is the length of the escape sequence at the beginning of text, or 0
// if there is none.
func escapeLen(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(text[2:]); ok {
			return 6
		}
	}
	return 0
}

// number passes over a number.
func (s *scanner) number() bool {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		return false
	}
	if s.skip('.') && !s.digits() {
		return false
	}
	if s.skip('e') || s.skip('E') {
		if !s.skip('+') {
			s.skip('-')
		}
		return s.digits()
	}
	return true
}

// skip passes over c if it is the very next byte.
func (s *scanner) skip(c byte) bool {
	if s.pos == len(s.text) || s.text[s.pos] != c {
		return false
	}
	s.pos++
	return true
}

// digits passes over one digit or more.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.text) && '0' <= s.text[s.pos] && s.text[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}
