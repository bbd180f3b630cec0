package fs

// statusID names a node of the status tree. It is packed into the node id, so
// that the tree needs no table of the nodes that the kernel knows: a listing of
// a million messages costs no memory, and another process that takes over the
// connection understands the ids.
type statusID struct {
	kind     statusKind
	route    uint16 // index of the route, or of the flat file
	attempts uint8  // of a message, modulo 16
	number   uint64 // of a message its sequence number, of a snapshot a count
}

// statusKind is the kind of a node of the status tree.
type statusKind uint8

const (
	kindRoot statusKind = iota // .status
	kindFlat                   // .status/<name>: one snapshot of it
)

// A node id of the tree, from the highest bit down: 1, kind, route, attempts,
// number. No other node id has the highest bit. 44 bits of sequence numbers last
// for 55 years at 10,000 messages a second.
const (
	statusBit    = 1 << 63
	kindShift    = 59
	routeShift   = 48
	attemptShift = 44
	maxRoutes    = 1 << (kindShift - routeShift)
	maxNumber    = 1 << attemptShift
)

// inStatus reports whether a node belongs to the status tree.
func inStatus(node uint64) bool { return node == statusNode || node&statusBit != 0 }

// node packs the id.
func (id statusID) node() uint64 {
	if id.kind == kindRoot {
		return statusNode
	}
	return statusBit | uint64(id.kind)<<kindShift | uint64(id.route%maxRoutes)<<routeShift |
		uint64(id.attempts%16)<<attemptShift | id.number%maxNumber
}

// ino is the inode number, which is constant for a path: it is without what
// tells one moment of a file from another.
func (id statusID) ino() uint64 {
	id.attempts = 0
	if id.kind == kindFlat {
		id.number = 0
	}
	return id.node()
}

// parseStatusID is the inverse of node.
func parseStatusID(node uint64) statusID {
	if node == statusNode {
		return statusID{}
	}
	return statusID{
		kind:     statusKind(node &^ statusBit >> kindShift),
		route:    uint16(node >> routeShift % maxRoutes),
		attempts: uint8(node >> attemptShift % 16),
		number:   node % maxNumber,
	}
}

// isDir reports whether the node is a directory.
func (id statusID) isDir() bool {
	return id.kind == kindRoot
}
