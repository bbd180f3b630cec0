package ingest

// maxFields bounds the memory for one record. Real ones have up to 40.
const maxFields = 10000

// record is the JSON value on one line. It is reused from line to line.
type record struct {
	text    []byte
	kind    byte     // the first byte of the value
	members members  // if it is an object
	triple  [][]byte // if it is an array: the first elements
	count   int      // if it is an array: how many elements it has
	scan    scanner
}

func newRecord(maxDepth int) *record {
	return &record{scan: scanner{maxDepth: maxDepth}}
}

// parse replaces the content of the record by that of text, which it keeps
// until the next parse.
func (r *record) parse(text []byte) (reason string) {
	r.text = text
	r.members, r.triple, r.count = r.members[:0], r.triple[:0], 0
	r.scan.reset(text)
	r.kind = r.scan.peek()
	switch r.kind {
	case '{':
		reason = r.scan.object(r.member)
	case '[':
		reason = r.scan.array(r.element)
	default:
		reason = r.scan.value()
	}
	if reason == "" && !r.scan.atEnd() {
		return ReasonTrailingGarbage
	}
	return reason
}

func (r *record) member(m member) (reason string) {
	if len(r.members) == maxFields {
		return ReasonTooManyFields
	}
	r.members = append(r.members, m)
	return ""
}

func (r *record) element(value []byte) (reason string) {
	r.count++
	if r.count <= 3 {
		r.triple = append(r.triple, value)
	}
	return ""
}

func (r *record) isObject() bool { return r.kind == '{' }

// isRetry reports whether the record is [topic, headers, notice], which is how
// sarra v2 keeps a message.
func (r *record) isRetry() bool {
	return r.count == 3 && r.triple[0][0] == '"' && r.triple[1][0] == '{' && r.triple[2][0] == '"'
}
