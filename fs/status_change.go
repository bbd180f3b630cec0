package fs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// unlink purges a message.
func (t *statusTree) unlink(in *fuse.InHeader, name string) fuse.Status {
	dir := parseStatusID(in.NodeId)
	if !dir.holdsMessages() {
		return fuse.EPERM
	}
	if err := t.mayUse(dir, &in.Caller); err != nil {
		return t.fs.status(err)
	}
	if _, done := t.fs.doneBefore(in); done {
		return fuse.OK
	}
	err := t.fs.patiently(in.Unique, func() error {
		return t.replace(dir, name, func(statusID, queue.Entry) ([]queue.Message, error) { return nil, nil })
	})
	if err == nil {
		t.fs.carriedOut(in.Unique, 0)
	}
	return t.fs.status(unlessResent(in, err))
}

// rename makes a message ready that is moved out of the tree into a directory of
// its route. The new name does not matter.
func (t *statusTree) rename(in *fuse.RenameIn, oldName, newName string) fuse.Status {
	dir := parseStatusID(in.NodeId)
	switch {
	case !inStatus(in.NodeId) || inStatus(in.Newdir):
		return fuse.EPERM // nothing gets into the tree
	case !dir.holdsMessages() || dir.kind == kindPendingDir:
		return fuse.EPERM
	case in.Flags&^unix.RENAME_NOREPLACE != 0:
		return fuse.EINVAL
	}
	if err := t.mayUse(dir, &in.Caller); err != nil {
		return t.fs.status(err)
	}
	to, route, err := t.target(in)
	if err != nil {
		return t.fs.status(err)
	}
	if _, done := t.fs.doneBefore(&in.InHeader); done {
		return fuse.OK
	}
	err = t.fs.patiently(in.Unique, func() error {
		return t.replace(dir, oldName, func(id statusID, e queue.Entry) ([]queue.Message, error) {
			if route != t.all()[id.route] {
				return nil, fmt.Errorf("move %q: not a directory of its route: %w", oldName, syscall.EPERM)
			}
			t.fs.large <- struct{}{}
			defer func() { <-t.fs.large }()
			return t.revive(id, e)
		})
	})
	if err = unlessResent(&in.InHeader, err); err == nil {
		t.leaveName(in, to, newName)
		t.fs.carriedOut(in.Unique, 0)
	}
	return t.fs.status(err)
}

// target is the directory of the mount to which something is moved.
func (t *statusTree) target(in *fuse.RenameIn) (*dir, *route, error) {
	t.fs.mu.Lock()
	defer t.fs.mu.Unlock()
	to, err := t.fs.dirLocked(in.Newdir)
	if err == nil {
		err = to.mayUseLocked(&in.Caller, mayWrite)
	}
	if err != nil {
		return nil, nil, err
	}
	return to, to.routeLocked(), nil
}

// leaveName gives the new name a grace second: mv looks at what it has moved.
func (t *statusTree) leaveName(in *fuse.RenameIn, to *dir, name string) {
	fs := t.fs
	process := fs.processOf(in.Pid)
	fs.mu.Lock()
	defer fs.mu.Unlock()
	key := nameKey{in.Uid, name}
	if to.nodes[key] != nil {
		return
	}
	n := fs.newNodeLocked(fs.newNodeID(to.routeLocked()), to, key, &fuse.Attr{Mode: 0o400, Owner: in.Owner})
	fs.nameLocked(n, to, key)
	fs.graceLocked(n, process)
	fs.dropIfEndedLocked(n)
}

// replace removes a message and puts in what by gives for it. If somebody else
// was faster it looks again: the message may be elsewhere.
func (t *statusTree) replace(dir statusID, name string, by func(statusID, queue.Entry) ([]queue.Message, error)) error {
	for {
		id, e, err := t.locate(dir, name)
		if err != nil {
			return err
		}
		with, err := by(id, e)
		if err != nil {
			return err
		}
		if err = t.route(int(id.route)).Replace(id.state(), e.Place, with); !errors.Is(err, queue.ErrNotFound) {
			if err == nil {
				t.count(e.Message, len(with))
			}
			return err
		}
	}
}

func (t *statusTree) count(m *queue.Message, with int) {
	what, total := "purged", &t.purged
	if with > 0 {
		what, total = "redriven", &t.redriven
	}
	total.Add(1)
	t.fs.opts.Logger.Debug(what, "id", m.ID, "file", m.File, "uid", m.UID, "reason", m.Reason)
}

// revive returns what of a message or a partial file is to be ready. What never
// was a message is decoded anew, and refused if it still is none.
func (t *statusTree) revive(id statusID, e queue.Entry) ([]queue.Message, error) {
	m := *e.Message
	if id.kind == kindDelayed || id.kind == kindDead && wasDecoded(&m) {
		m.Reason, m.Attempts = "", 0
		return []queue.Message{m}, nil
	}
	if strings.HasPrefix(m.Reason, corruptReason) {
		return nil, fmt.Errorf("%w: %s", errNoMessage, m.Reason)
	}
	return t.decodeAnew(&m, t.all()[id.route])
}

// decodeAnew decodes the body of what was not a message. Its lines have the
// numbers, and so the messages the IDs, that they would have had in the file.
// As with a held file, nothing is refused that has a message in it.
func (t *statusTree) decodeAnew(m *queue.Message, r *route) ([]queue.Message, error) {
	origin := t.fs.originOfMessage(r, m)
	found := r.format().Decode(m.Body, ingest.Position{
		Line: int(max(m.Line, 1)) - 1, File: m.ID.File(), Origin: origin, Seen: new(ingest.Seen),
	})
	ms := found.Messages
	if found.Tail != nil {
		ms = append(ms, *found.Tail)
	}
	if len(ms) > 0 && !slices.ContainsFunc(ms, func(n queue.Message) bool { return !n.Dead() }) {
		return nil, fmt.Errorf("%w: %s", errNoMessage, ms[0].Reason)
	}
	r.addProvenance(ms, &origin)
	for i := range ms {
		n := &ms[i]
		n.ID = siblingID(m, n.Line)
		n.Ingested, n.File, n.UID = m.Ingested, m.File, m.UID
	}
	return ms, nil
}

// siblingID is the ID of the message on a line of the file that m is from.
func siblingID(m *queue.Message, line uint32) queue.ID {
	i := strings.LastIndexByte(string(m.ID), '-')
	if line == m.Line || i < 0 {
		return m.ID
	}
	return queue.ID(fmt.Sprintf("%s-%d", m.ID[:i], line))
}

// wasDecoded reports whether a dead letter was a message once.
func wasDecoded(m *queue.Message) bool {
	return m.HasKey || m.Words != nil || m.ContentType != "" || m.Headers != nil
}
