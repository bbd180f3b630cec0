package queue

// Problem is something that Check has found.
type Problem struct {
	// Kind is one of
	//
	//	format        the file FORMAT is missing or cannot be read
	//	store         the database cannot be opened, or not be read to its end
	//	record        a record cannot be decoded: it becomes a dead letter
	//	counters      the counters of a route differ from its rows
	//	next          a number is in use that would be given again
	//	head          messages lie where they would not be looked for
	//	stage         the head and the chunks of a stage do not fit its rows
	//	route-name    a route has no name of its own
	//	delayed-key   a delayed message has no due time
	//	key-malformed a row has a key of no known form
	Kind string `json:"kind"`

	Route  string `json:"route,omitempty"` // name of the route
	Detail string `json:"detail"`          // for people
}

// maxProblems is how many problems are listed.
const maxProblems = 1000

// problems is a list that does not grow without bound.
type problems struct {
	list  []Problem
	count uint64
	kinds map[string]uint64
}

func (ps *problems) add(p Problem) {
	ps.count++
	if ps.kinds == nil {
		ps.kinds = map[string]uint64{}
	}
	ps.kinds[p.Kind]++
	if len(ps.list) < maxProblems {
		ps.list = append(ps.list, p)
	}
}
