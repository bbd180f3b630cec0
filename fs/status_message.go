package fs

import (
	"errors"
	"fmt"
	"hash/maphash"
	"syscall"
	"time"

	"spoolfs/queue"
)

// statusName is a name in a directory of messages, hashed: that it is another's
// is found out when the message is read.
type statusName uint64

var nameSeed = maphash.MakeSeed()

func nameIn(dir statusID, name string) statusName {
	return statusName(maphash.Comparable(nameSeed, struct {
		dir  uint64
		name string
	}{dir.node(), name}))
}

// How many names, and how many delayed messages, are remembered: in some 40 MiB
// and 5 MiB. A name that is not costs a scan of its directory.
const (
	maxPlaces = 1 << 20
	maxDues   = 1 << 17
)

// scanLimit bounds a scan. Ten million messages take some ten seconds.
const scanLimit = 30 * time.Second

// errScan says that a directory is too large to find a name in it that was not
// listed before.
var errScan = fmt.Errorf("name was not listed, and there are too many to look at: %w", syscall.ETIMEDOUT)

// locate returns the message of a name: from where it was seen last, or after a
// scan.
func (t *statusTree) locate(dir statusID, name string) (statusID, queue.Entry, error) {
	if node, ok := t.places.get(nameIn(dir, name)); ok {
		id := parseStatusID(node)
		e, err := t.entry(id)
		switch {
		case err == nil && messageName(dir, e) == name:
			return messageID(dir, int(id.route), e), e, nil
		case err != nil && !errors.Is(err, queue.ErrNotFound):
			return id, e, err
		}
	}
	return t.scan(dir, func(_ statusID, found string) bool { return found == name })
}

// scan looks at the messages of a directory, one by one, for one that matches.
func (t *statusTree) scan(dir statusID, match func(statusID, string) bool) (statusID, queue.Entry, error) {
	t.scans.Add(1)
	deadline := time.Now().Add(scanLimit)
	for i, end := t.routesOf(dir); i < end; i++ {
		for e, err := range t.route(i).Entries(dir.state(), queue.Place{}) {
			if err != nil {
				return statusID{}, e, err
			}
			if id, name := t.note(dir, i, e); match(id, name) {
				return id, e, nil
			}
			if time.Now().After(deadline) {
				return statusID{}, e, errScan
			}
		}
	}
	return statusID{}, queue.Entry{}, syscall.ENOENT
}

// entry reads the message of a node.
func (t *statusTree) entry(id statusID) (queue.Entry, error) {
	e := queue.Entry{Place: queue.Place{Seq: id.number}}
	if id.kind == kindDelayed {
		due, ok := t.dues.get(id.ino())
		if !ok {
			_, e, err := t.scan(id.dir(), func(found statusID, _ string) bool { return found.ino() == id.ino() })
			return e, err
		}
		e.Place.Due = due
	}
	m, err := t.route(int(id.route)).Entry(id.state(), e.Place)
	e.Message = m
	return e, err
}

// moment reads the message of a node and fails if it is not the same any more:
// one that has been tried again is another file. On ESTALE the kernel looks the
// name up once more.
func (t *statusTree) moment(id statusID) (*snapshot, error) {
	if int(id.route) >= len(t.all()) {
		return nil, syscall.ESTALE
	}
	e, err := t.entry(id)
	if err != nil {
		return nil, err
	}
	if uint8(e.Attempts%16) != id.attempts {
		return nil, syscall.ESTALE
	}
	return t.messageFile(id, e), nil
}

// messageFile is a message as a file, which is the writer's by the looks of it.
func (t *statusTree) messageFile(id statusID, e queue.Entry) *snapshot {
	content := e.Body
	if id.kind != kindPartial {
		content = messageText(e)
	}
	s := t.snapshot(id, content, e.Ingested)
	s.attr.Uid = e.UID
	return s
}
