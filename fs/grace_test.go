package fs

import (
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// TestGrace_IsForTheWriter proves F9: for a second after its RELEASE the process
// that wrote a file may use its name, and nobody else; nothing is taken back by
// that.
func TestGrace_IsForTheWriter(t *testing.T) {
	r := newRig(t, Options{})
	u, other := r.as(1), r.as(1).process(2)
	u.put("f", line("a"))
	node, attr, st := u.stat("f")
	if !st.Ok() || attr.Size != uint64(len(line("a"))) {
		t.Fatalf("stat by the writer: %d bytes, %v", attr.Size, st)
	}
	if _, st := other.lookup("f"); st != fuse.ENOENT {
		t.Errorf("lookup by another process: %v", st)
	}
	if names, _ := r.as(0).list(); len(names) != 1 {
		t.Errorf("the directory lists %q", names)
	}
	if st := u.chmod(node, 0o600); !st.Ok() {
		t.Errorf("chmod: %v", st)
	}
	if _, st := u.openNode(node, syscall.O_RDONLY); st != fuse.ENOENT {
		t.Errorf("open for reading: %v", st)
	}
	if _, st := u.open("f", syscall.O_CREAT|syscall.O_EXCL); st != fuse.Status(syscall.EEXIST) {
		t.Errorf("exclusive create by the writer: %v", st)
	}
	if st := u.rename("f", "g"); !st.Ok() {
		t.Errorf("rename: %v", st)
	}
	if st := other.rename("g", "h"); st != fuse.ENOENT {
		t.Errorf("rename by another process: %v", st)
	}
	if st := u.unlink("g"); !st.Ok() {
		t.Errorf("unlink: %v", st)
	}
	if st := u.unlink("g"); st != fuse.ENOENT {
		t.Errorf("second unlink: %v", st)
	}
	r.wantBodies(line("a"))
}

// TestGrace_Ends: after the second the name is gone and nothing is kept.
func TestGrace_Ends(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put("f", line("a"))
	u.put("g", line("b"))
	if st := u.unlink("g"); !st.Ok() {
		t.Error(st)
	}
	r.clock.Add(int64(graceTime))
	if _, st := u.lookup("f"); st != fuse.ENOENT {
		t.Errorf("lookup a second later: %v", st)
	}
	f := u.mustOpen("f", syscall.O_CREAT|syscall.O_EXCL)
	r.pass(0)
	if len(r.fs.nodes) != 1 || len(r.fs.expiries) != 0 {
		t.Errorf("%d nodes and %d expiries are kept", len(r.fs.nodes), len(r.fs.expiries))
	}
	f.close()
}

// TestGrace_OpenAgain: the writer that opens the name again begins a fresh file.
func TestGrace_OpenAgain(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put("f", line("a"))
	f := u.mustOpen("f", syscall.O_WRONLY|syscall.O_APPEND)
	f.writeAt(line("b"), 0)
	if _, st := u.process(2).lookup("f"); !st.Ok() {
		t.Errorf("lookup of the reopened name by another process: %v", st)
	}
	f.close()
	r.wantBodies(line("a") + line("b"))
}

// TestGrace_AfterRename: what is moved into place can have its attributes set.
func TestGrace_AfterRename(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put(".f", line("a"))
	if st := u.rename(".f", "f"); !st.Ok() {
		t.Fatal(st)
	}
	node, st := u.lookup("f")
	if !st.Ok() {
		t.Fatal(st)
	}
	if st := u.chmod(node, 0o600); !st.Ok() {
		t.Errorf("chmod of the new name: %v", st)
	}
	if _, st := u.process(2).lookup("f"); st != fuse.ENOENT {
		t.Errorf("lookup by another process: %v", st)
	}
}

// TestGrace_NameTakenOver: two processes write one name at the same time and set its
// mode afterwards, as install does. The one whose file has lost the name finds the
// other's.
func TestGrace_NameTakenOver(t *testing.T) {
	r := newRig(t, Options{})
	u, other := r.as(1), r.as(1).process(2)
	a, b := u.mustCreate("f"), u.mustCreate("g")
	a.flush()
	b.close()
	c, d := other.mustCreate("f"), other.mustCreate("g")
	c.flush()
	d.close()
	a.release()
	c.release()
	for _, name := range []string{"f", "g"} {
		if node, st := u.lookup(name); !st.Ok() {
			t.Errorf("lookup of %s by its first writer: %v", name, st)
		} else if st := u.chmod(node, 0o600); !st.Ok() {
			t.Errorf("chmod of %s: %v", name, st)
		}
		if _, st := u.process(3).lookup(name); st != fuse.ENOENT {
			t.Errorf("lookup of %s by a third process: %v", name, st)
		}
	}
	r.pass(graceTime)
	if len(r.fs.nodes)+len(r.fs.expiries) != 0 {
		t.Errorf("%d nodes and %d expiries are kept", len(r.fs.nodes), len(r.fs.expiries))
	}
}

// TestGrace_UnknownProcess: a rename by a process outside of our pid namespace
// leaves nothing behind.
func TestGrace_UnknownProcess(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1).process(0)
	u.put(".f", line("a"))
	if st := u.rename(".f", "f"); !st.Ok() {
		t.Fatal(st)
	}
	r.pass(graceTime)
	if len(r.fs.nodes)+len(r.fs.root.nodes) != 0 {
		t.Errorf("%d nodes and %d names are kept", len(r.fs.nodes), len(r.fs.root.nodes))
	}
	r.wantBodies(line("a"))
}

// TestGrace_EndsDuringRename: a name whose grace second ends while it is renamed is
// there for another, and leaves nothing behind then.
func TestGrace_EndsDuringRename(t *testing.T) {
	r := newRig(t, Options{})
	u := r.as(1)
	u.put("f", line("a"))
	r.fs.mu.Lock()
	in := &fuse.RenameIn{InHeader: u.header(rootNode), Newdir: rootNode}
	m, err := r.fs.planLocked(in, r.fs.root, r.fs.root, "f", "g")
	r.fs.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	r.pass(graceTime)
	m.process = process(u.pid)
	if err := r.fs.rename(m); err != nil {
		t.Error(err)
	}
	if node, st := u.lookup("g"); !st.Ok() || u.chmod(node, 0o600) != fuse.OK {
		t.Errorf("lookup of the new name: %v", st)
	}
	r.pass(graceTime)
	if len(r.fs.nodes)+len(r.fs.root.nodes) != 0 {
		t.Errorf("%d nodes and %d names are kept", len(r.fs.nodes), len(r.fs.root.nodes))
	}
}

// TestNode_FlushedButOpen: a name whose file was flushed while it stays open (a
// shell after "exec 7> f") exists again when the RELEASE should have come.
func TestNode_FlushedButOpen(t *testing.T) {
	r := newRig(t, Options{})
	u, other := r.as(1), r.as(1).process(2)
	f := u.mustCreate("f")
	f.flush()
	if _, st := other.lookup("f"); st != fuse.ENOENT {
		t.Errorf("just after the flush: %v", st)
	}
	r.clock.Add(int64(closedTime))
	if _, st := other.lookup("f"); !st.Ok() {
		t.Errorf("later: %v", st)
	}
	f.writeAt(line("a"), 0)
	f.close()
	r.wantBodies(line("a"))
}

// TestNode_ManyProcesses: the memory of a name is bounded however many processes
// write to it.
func TestNode_ManyProcesses(t *testing.T) {
	r := newRig(t, Options{})
	first := r.as(1).mustCreate("f")
	for pid := range uint32(3 * maxGraces) {
		r.as(1).process(2000+pid).put("f", line("a"))
	}
	if n := len(r.fs.nodes[first.node].graces); n != maxGraces {
		t.Errorf("%d graces are kept, want %d", n, maxGraces)
	}
	first.close()
}
