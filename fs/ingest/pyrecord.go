package ingest

import "bytes"

// A record of sr3 is its message as jsonpickle writes it, with the private
// fields that sr3 keeps beside those of v03.

// marked reports whether a record was written by python's sr3.
func (ms members) marked() bool {
	for i := range ms {
		switch string(ms[i].name) {
		case "py/object", "_deleteOnPost":
			return true
		}
	}
	return false
}

// publicMembers returns what sr3 publishes of a python-marked record: its
// fields without the private ones, with jsonpickle's spelling undone. They are
// at most maxBytes long.
func publicMembers(rec *record, maxBytes int) (public members, reason string) {
	all, index := rec.members.unique()
	private := privateMembers(all, index)
	for i, m := range all {
		if m.tags > 0 && !private[i] {
			if reason := resolve(all, private, rec.scan.maxDepth, maxBytes); reason != "" {
				return nil, reason
			}
			break
		}
	}
	public = all[:0]
	for i, m := range all {
		if !private[i] {
			public = append(public, m)
		}
	}
	return public, ""
}

// privateMembers tells for each member whether sr3 would take it out.
func privateMembers(all members, index map[string]int) []bool {
	private := make([]bool, len(all))
	listed, ok := all.last("_deleteOnPost")
	if ok {
		listed, ok = sequence(listed)
	}
	for name := range stringElements(listed) {
		if i, found := index[string(name)]; found {
			private[i] = true
		}
	}
	for i, m := range all {
		switch {
		case bytes.HasPrefix(m.name, []byte("_")), bytes.HasPrefix(m.name, []byte("py/")):
			private[i] = true
		case !ok && isInternal(string(m.name)):
			private[i] = true
		}
	}
	return private
}

// sequence returns the array in a value that is an array, a python set or a
// python tuple.
func sequence(value []byte) ([]byte, bool) {
	object := objectMembers(value)
	for _, tag := range [...]string{"py/set", "py/tuple"} {
		if inner, ok := object.last(tag); ok {
			value = inner
		}
	}
	return value, len(value) > 0 && value[0] == '['
}

// isInternal reports whether sr3 keeps a field of that name for itself. It
// stands in for the list that a record should have brought along.
func isInternal(name string) bool {
	switch name {
	case "ack_id", "exchange", "exchangeSplitOverride", "local_offset",
		"new_baseUrl", "new_dir", "new_file", "new_relPath", "new_retrievePath", "new_subtopic",
		"noDupe", "nodupe_override",
		"old_baseUrl", "old_format", "old_relPath", "old_retrievePath", "old_subtopic",
		"post_exchange", "post_fileOp", "post_format", "post_topic",
		"reject", "report", "subtopic", "topic":
		return true
	}
	return false
}
