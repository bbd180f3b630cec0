package fs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"pgregory.net/rapid"

	"spoolfs/queue"
)

// TestFS_Model compares the file system, on a real queue, with a model of some
// hundred lines that keeps everything in memory: random operations of two
// processes each of two users, on ordinary and held names, with restarts between
// them. Each answer must be that of the model, and each line come out exactly as
// often as the model says. Lines are all equally long, so that the model counts
// in lines.
func TestFS_Model(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &rig{t: t, store: t.TempDir(), epoch: time.Unix(1e9, 0)}
		r.start()
		defer r.stop()
		m := &model{rt: rt, r: r, names: map[modelKey]*modelNode{}, want: map[string]int{}, got: map[string]int{}}
		rt.Repeat(map[string]func(*rapid.T){
			"open":     m.open,
			"open too": m.open,
			"write":    m.write,
			"write 2":  m.write,
			"truncate": m.truncate,
			"read":     m.read,
			"flush":    m.flush,
			"fsync":    m.fsync,
			"close":    m.close,
			"release":  m.release,
			"unlink":   m.unlink,
			"rename":   m.rename,
			"lookup":   m.lookup,
			"pass":     m.pass,
			"restart":  m.restart,
			"takeover": m.takeover,
		})
		m.finish()
	})
}

type model struct {
	rt      *rapid.T
	r       *rig
	names   map[modelKey]*modelNode
	handles []*modelHandle
	lines   int            // written so far, which numbers them
	want    map[string]int // how often each line is to be published
	got     map[string]int
}

type modelKey struct {
	uid  uint32
	name string
}

type modelNode struct {
	key     modelKey
	named   bool
	held    *modelFile
	handles []*modelHandle
	graces  map[uint32]time.Time
}

type modelFile struct {
	held, ended, abandoned, stored bool
	lines                          []string
	staged                         []string // what is promised
	base                           int      // lines that are published
	news                           bool
	active, since                  time.Time // of news
	writers                        int
}

type modelHandle struct {
	*opened
	node    *modelNode
	file    *modelFile
	writer  bool
	append  bool
	flushed time.Time // zero: not since its last write
}

const lineSize = len(`{"pubTime": "20261130T070000.000", "baseUrl": "http://h", "relPath": "d/000000"}` + "\n")

func (m *model) now() time.Time { return m.r.now() }

// user draws a process.
func (m *model) user(t *rapid.T) user {
	uid := rapid.Uint32Range(1, 2).Draw(t, "uid")
	return m.r.as(uid).process(10*uid + rapid.Uint32Range(0, 1).Draw(t, "process"))
}

func (m *model) name(t *rapid.T, what string) string {
	return rapid.SampledFrom([]string{"a", "b", ".h", "t.tmp"}).Draw(t, what)
}

// handle draws an open file that may be written to, if need be.
func (m *model) handle(t *rapid.T, writer bool) *modelHandle {
	var some []*modelHandle
	for _, h := range m.handles {
		if h.writer || !writer {
			some = append(some, h)
		}
	}
	if len(some) == 0 {
		t.Skip("nothing is open")
	}
	return some[rapid.IntRange(0, len(some)-1).Draw(t, "handle")]
}

func (m *model) check(what string, got, want fuse.Status) {
	if got != want {
		m.rt.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// isOpen is whether a name exists for all processes of the user.
func (m *model) isOpen(n *modelNode) bool {
	return n.held != nil || slices.ContainsFunc(n.handles, func(h *modelHandle) bool {
		return h.writer && (h.flushed.IsZero() || m.now().Sub(h.flushed) >= closedTime)
	})
}

// find returns the node of a name if it exists for a process.
func (m *model) find(u user, name string) *modelNode {
	n := m.names[modelKey{u.uid, name}]
	if n == nil || m.isOpen(n) || m.now().Before(n.graces[u.pid]) {
		return n
	}
	for _, h := range n.handles {
		if h.writer && h.pid == u.pid {
			return n
		}
	}
	return nil
}

func (m *model) open(t *rapid.T) {
	u, name := m.user(t), m.name(t, "name")
	flags := rapid.SampledFrom([]uint32{
		syscall.O_RDONLY, syscall.O_RDWR, syscall.O_WRONLY | syscall.O_CREAT,
		syscall.O_WRONLY | syscall.O_CREAT | syscall.O_APPEND, syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC,
		syscall.O_RDWR | syscall.O_CREAT | syscall.O_EXCL,
	}).Draw(t, "flags")
	writer := flags&syscall.O_ACCMODE != syscall.O_RDONLY
	n := m.find(u, name)
	f, want := m.fileFor(n, name, flags)
	got, st := u.open(name, flags)
	m.check(fmt.Sprintf("%d/%d opens %s with %#x", u.uid, u.pid, name, flags), st, want)
	if !st.Ok() {
		return
	}
	if n == nil {
		n = &modelNode{graces: map[uint32]time.Time{}}
		if isHeld(name) {
			n.held = f
		}
		m.place(n, modelKey{u.uid, name})
	}
	h := &modelHandle{opened: got, node: n, file: f, writer: writer, append: flags&syscall.O_APPEND != 0}
	n.handles = append(n.handles, h)
	m.handles = append(m.handles, h)
	if writer {
		f.writers++
	}
	if n.held == f && flags&syscall.O_TRUNC != 0 {
		f.lines = nil
	}
}

// fileFor is the file that an open gets.
func (m *model) fileFor(n *modelNode, name string, flags uint32) (*modelFile, fuse.Status) {
	fresh := &modelFile{held: isHeld(name), active: m.now(), since: m.now()}
	writer := flags&syscall.O_ACCMODE != syscall.O_RDONLY
	switch {
	case n == nil && flags&syscall.O_CREAT == 0:
		return nil, fuse.ENOENT
	case n == nil:
		return fresh, fuse.OK
	case flags&syscall.O_EXCL != 0:
		return nil, fuse.Status(syscall.EEXIST)
	case n.held != nil:
		return n.held, fuse.OK
	case writer:
		fresh.held = false // an ordinary file may have got a held name
		return fresh, fuse.OK
	case !m.isOpen(n):
		return nil, fuse.ENOENT
	}
	for _, h := range slices.Backward(n.handles) {
		if h.writer {
			return h.file, fuse.OK
		}
	}
	return nil, fuse.ENOENT
}

// place gives a node a name; what had it goes on without, or, held, goes.
func (m *model) place(n *modelNode, key modelKey) {
	if n.named {
		delete(m.names, n.key)
	}
	clear(n.graces)
	if old := m.names[key]; old != nil && old != n {
		m.leave(old, n)
		m.unname(old)
		if old.held != nil {
			old.held.ended = true
		}
	}
	n.key, n.named = key, true
	m.names[key] = n
}

// leave gives the grace seconds of a node to the one that takes its name.
func (m *model) leave(from, to *modelNode) {
	maps.Copy(to.graces, from.graces)
	for _, h := range from.handles {
		if h.writer && !h.flushed.IsZero() && m.now().Sub(h.flushed) < closedTime {
			to.graces[h.pid] = m.now().Add(graceTime)
		}
	}
}

func (m *model) unname(n *modelNode) {
	delete(m.names, n.key)
	n.named = false
	clear(n.graces)
}

func (m *model) write(t *rapid.T) {
	h := m.handle(t, true)
	f := h.file
	at := rapid.IntRange(0, len(f.lines)).Draw(t, "line")
	text := line(fmt.Sprintf("%06d", m.lines))
	m.lines++
	h.flushed = time.Time{}
	st := h.writeAt(text, uint64(at*lineSize))
	if h.append {
		at = len(f.lines)
	}
	if at < f.base {
		m.check("write below what is committed", st, fuse.EINVAL)
		return
	}
	m.check("write", st, fuse.OK)
	m.touch(f)
	if at == len(f.lines) {
		f.lines = append(f.lines, text)
	} else {
		f.lines = slices.Clone(f.lines)
		f.lines[at] = text
	}
}

func (m *model) truncate(t *rapid.T) {
	h := m.handle(t, true)
	f := h.file
	to := rapid.IntRange(0, len(f.lines)).Draw(t, "lines")
	h.flushed = time.Time{}
	st := h.opened.truncate(uint64(to * lineSize))
	if to < f.base {
		m.check("truncate below what is committed", st, fuse.EINVAL)
		return
	}
	m.check("truncate", st, fuse.OK)
	if to < len(f.lines) {
		m.touch(f)
	}
	f.lines = f.lines[:to:to]
}

// touch notes that a file has something to be committed.
func (m *model) touch(f *modelFile) {
	if !f.news {
		f.news, f.active, f.since = true, m.now(), m.now()
	}
}

func (m *model) read(t *rapid.T) {
	h := m.handle(t, false)
	from := rapid.IntRange(0, len(h.file.lines)).Draw(t, "line")
	got, st := h.readAt(1<<20, uint64(from*lineSize))
	if from < h.file.base && from < len(h.file.lines) {
		m.check("read below what is committed", st, fuse.EINVAL)
		return
	}
	m.check("read", st, fuse.OK)
	if want := strings.Join(h.file.lines[from:], ""); got != want {
		m.rt.Fatalf("read %q, want %q", got, want)
	}
}

// stage promises what is written so far.
func (m *model) stage(f *modelFile) {
	f.active = m.now()
	if !f.abandoned && !f.ended {
		f.staged, f.stored = f.lines, true
	}
}

func (m *model) flush(t *rapid.T) {
	h := m.handle(t, false)
	m.check("flush", h.opened.flush(), fuse.OK)
	m.flushed(h)
}

func (m *model) flushed(h *modelHandle) {
	if h.writer {
		m.stage(h.file)
		h.flushed = m.now()
	}
}

func (m *model) fsync(t *rapid.T) {
	h := m.handle(t, true)
	m.check("fsync", h.opened.fsync(), fuse.OK)
	m.stage(h.file)
}

func (m *model) close(t *rapid.T) {
	h := m.handle(t, false)
	m.check("flush", h.opened.flush(), fuse.OK)
	m.flushed(h)
	m.released(h)
}

func (m *model) release(t *rapid.T) { m.released(m.handle(t, false)) }

// released releases a handle, and commits an ordinary file when it was the last
// one that could write.
func (m *model) released(h *modelHandle) {
	h.opened.release()
	drop := func(o *modelHandle) bool { return o == h }
	m.handles = slices.DeleteFunc(m.handles, drop)
	h.node.handles = slices.DeleteFunc(h.node.handles, drop)
	if !h.writer {
		return
	}
	if h.file.writers--; h.file.writers == 0 {
		m.stage(h.file)
		if !h.file.held {
			m.commit(h.file)
		}
	}
	if h.node.named && h.node.held == nil {
		h.node.graces[h.pid] = m.now().Add(graceTime)
	}
}

// commit publishes what is promised.
func (m *model) commit(f *modelFile) {
	if f.ended {
		return
	}
	f.ended = true
	m.publish(f)
}

func (m *model) publish(f *modelFile) {
	for _, l := range f.staged[min(f.base, len(f.staged)):] {
		m.want[l]++
	}
}

func (m *model) unlink(t *rapid.T) {
	u, name := m.user(t), m.name(t, "name")
	n := m.find(u, name)
	st := u.unlink(name)
	if n == nil {
		m.check("unlink", st, fuse.ENOENT)
		return
	}
	m.check("unlink", st, fuse.OK)
	m.unname(n)
	if n.held != nil {
		n.held.ended = true
		return
	}
	for _, h := range n.handles {
		if h.writer && h.pid == u.pid {
			h.file.abandoned = true
		}
	}
}

func (m *model) rename(t *rapid.T) {
	u, from, to := m.user(t), m.name(t, "from"), m.name(t, "to")
	n, over := m.find(u, from), m.find(u, to)
	st := u.rename(from, to)
	if n == nil {
		m.check("rename", st, fuse.ENOENT)
		return
	}
	m.check("rename", st, fuse.OK)
	if n == over {
		return
	}
	f := n.held
	m.place(n, modelKey{u.uid, to})
	switch {
	case f == nil:
	case isHeld(to):
		f.active = m.now()
		return
	default:
		n.held, f.held, f.news = nil, false, true
		m.stage(f)
		f.since = m.now()
		if f.writers == 0 {
			m.commit(f)
		}
	}
	n.graces[u.pid] = m.now().Add(graceTime)
}

func (m *model) lookup(t *rapid.T) {
	u, name := m.user(t), m.name(t, "name")
	_, attr, st := u.stat(name)
	n := m.find(u, name)
	if n == nil {
		m.check("lookup", st, fuse.ENOENT)
		return
	}
	m.check("lookup", st, fuse.OK)
	if n.held != nil && attr.Size != uint64(len(n.held.lines)*lineSize) {
		m.rt.Fatalf("%s has %d bytes, want %d lines", name, attr.Size, len(n.held.lines))
	}
}

func (m *model) pass(t *rapid.T) {
	m.r.pass(rapid.SampledFrom([]time.Duration{100 * time.Millisecond, closedTime, graceTime, 5 * time.Second, time.Minute}).Draw(t, "time"))
	for _, h := range m.handles {
		f := h.file
		quiet := m.now().Sub(f.active) >= 5*time.Second || m.now().Sub(f.since) >= maxQuiet*5*time.Second
		if h.writer && f.news && !f.held && !f.ended && !f.abandoned && quiet {
			f.news, f.since = false, m.now()
			m.stage(f)
			m.publish(f)
			f.base = len(f.lines)
		}
	}
}

// restart is the death of the daemon: what is promised of ordinary files is
// published, and held files are what was promised of them.
func (m *model) restart(*rapid.T) {
	files := map[*modelFile]bool{}
	for _, h := range m.handles {
		files[h.file] = true
	}
	for _, n := range m.names {
		if n.held != nil {
			files[n.held] = true
		}
	}
	m.r.restart()
	for f := range files {
		f.writers = 0
		if !f.held {
			m.commit(f)
		} else {
			f.lines = f.staged
		}
	}
	maps.DeleteFunc(m.names, func(_ modelKey, n *modelNode) bool {
		n.handles = nil
		return n.held == nil || !n.held.stored
	})
	m.handles = nil
	m.drain()
}

func (m *model) drain() {
	for l := range strings.Lines(m.r.bodies()) {
		m.got[l]++
	}
	if !maps.Equal(m.got, m.want) {
		m.rt.Fatalf("published %v, want %v", m.got, m.want)
	}
}

// finish closes everything and looks for what is left.
// takeover changes nothing for anybody.
func (m *model) takeover(*rapid.T) { m.r.takeOver() }

func (m *model) finish() {
	for len(m.handles) > 0 {
		m.released(m.handles[0])
	}
	m.drain()
	held, staged := 0, 0
	for _, n := range m.names {
		if n.held != nil {
			held++
			m.r.as(n.key.uid).unlink(n.key.name)
		}
	}
	m.r.pass(2 * graceTime)
	s := m.r.stats()
	staged = int(s.Staged)
	if s != (queue.Stats{}) || len(m.r.fs.nodes) != 0 || m.r.fs.usage.held() != (holding{}) {
		m.rt.Fatalf("of %d held files %d entries are left, %+v, %d nodes, %+v in use",
			held, staged, s, len(m.r.fs.nodes), m.r.fs.usage.held())
	}
}
