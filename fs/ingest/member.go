package ingest

import "bytes"

// member is a key of a JSON object with its value, as they stand in the text.
type member struct {
	key   []byte // with its quotes
	name  []byte // what key means
	value []byte

	// tags is how many keys in value have a meaning for jsonpickle.
	tags int
}

// members are the members of a JSON object, in the order of the text.
type members []member

// last returns the value of the last member of that name, which is the one that
// counts.
func (ms members) last(name string) (value []byte, ok bool) {
	for i := len(ms) - 1; i >= 0; i-- {
		if string(ms[i].name) == name {
			return ms[i].value, true
		}
	}
	return nil, false
}

// unique returns the members with the last value of a name that occurs more
// than once in the place of the first, and where each name stands.
func (ms members) unique() (members, map[string]int) {
	kept := make(members, 0, len(ms))
	index := make(map[string]int, len(ms))
	for _, m := range ms {
		if i, seen := index[string(m.name)]; seen {
			kept[i].value, kept[i].tags = m.value, m.tags
			continue
		}
		index[string(m.name)] = len(kept)
		kept = append(kept, m)
	}
	return kept, index
}

// render writes an object with the punctuation of python's json.dumps.
func (ms members) render() []byte {
	size := len("{}")
	for _, m := range ms {
		size += len(m.key) + len(": ") + len(m.value) + len(", ")
	}
	var out bytes.Buffer
	out.Grow(size)
	out.WriteByte('{')
	for i, m := range ms {
		if i > 0 {
			out.WriteString(", ")
		}
		out.Write(m.key)
		out.WriteString(": ")
		out.Write(m.value)
	}
	out.WriteByte('}')
	return out.Bytes()
}
