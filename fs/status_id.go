package fs

import "spoolfs/queue"

// statusID names a node of the status tree. It is packed into the node id, so
// that the tree needs no table of the nodes that the kernel knows: a listing of
// a million messages costs no memory, and another process that takes over the
// connection understands the ids.
type statusID struct {
	kind     statusKind
	route    uint16 // index of the route, or of the flat file
	attempts uint8  // of a message, modulo 16
	number   uint64 // of a message its sequence number, of a snapshot a count, of a user the uid, of an open file its node
}

// statusKind is the kind of a node of the status tree.
type statusKind uint8

const (
	kindRoot       statusKind = iota // .status
	kindFlat                         // .status/<name>: one snapshot of it
	kindControl                      // .status/ctl
	kindRoutes                       // .status/routes
	kindRoute                        // .status/routes/<route>
	kindPendingDir                   // .status/routes/<route>/pending
	kindDelayedDir                   // .status/routes/<route>/delayed
	kindDeadDir                      // .status/routes/<route>/dead
	kindPartialDir                   // .status/partial
	kindTornDir                      // .status/routes/<route>/partial
	kindPending                      // .status/routes/<route>/pending/<id>
	kindDelayed                      // .status/routes/<route>/delayed/<id>
	kindDead                         // .status/routes/<route>/dead/<id>
	kindPartial                      // .status/partial/<name>.<id>
	kindTorn                         // .status/routes/<route>/partial/<id>
	kindOpenDir                      // .status/open
	kindUserDir                      // .status/open/<uid>
	kindOpenFile                     // .status/open/<uid>/<name>
	kindPage                         // .status/<name>.<key>: a page of a flat file
)

// A node id of the tree, from the highest bit down: 1, kind, route, attempts,
// number. No other node id has the highest bit. 44 bits of sequence numbers last
// for 55 years at 10,000 messages a second.
const (
	statusBit    = 1 << 63
	kindShift    = 58
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
	if id.isSnapshot() {
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

// isSnapshot reports whether the node is one moment of a flat file, or of a page of it.
func (id statusID) isSnapshot() bool { return id.kind == kindFlat || id.kind == kindPage }

// isDir reports whether the node is a directory.
func (id statusID) isDir() bool {
	switch id.kind {
	case kindRoot, kindRoutes, kindRoute, kindOpenDir, kindUserDir:
		return true
	}
	return id.holdsMessages()
}

// holdsMessages reports whether the node is a directory of messages.
func (id statusID) holdsMessages() bool {
	return id.kind >= kindPendingDir && id.kind <= kindTornDir
}

// isMessage reports whether the node is a message.
func (id statusID) isMessage() bool { return id.kind >= kindPending && id.kind <= kindTorn }

// dir is the directory of a message.
func (id statusID) dir() statusID {
	d := statusID{kind: id.kind - kindPending + kindPendingDir, route: id.route}
	if d.kind == kindPartialDir {
		d.route = 0
	}
	return d
}

// state is that of the messages in a directory, or of a message.
func (id statusID) state() queue.State {
	switch id.kind {
	case kindPendingDir, kindPending:
		return queue.Pending
	case kindDelayedDir, kindDelayed:
		return queue.Delayed
	case kindDeadDir, kindDead:
		return queue.Dead
	}
	return queue.Partial
}

// messageID names a message in a directory. Its route is that of the message,
// since the directory of partial files is one for all routes.
func messageID(dir statusID, route int, e queue.Entry) statusID {
	return statusID{
		kind: dir.kind + kindPending - kindPendingDir, route: uint16(route),
		attempts: uint8(e.Attempts % 16), number: e.Place.Seq,
	}
}
