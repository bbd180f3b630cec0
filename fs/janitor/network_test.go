package janitor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// unsure is a file server as seen through a network that loses answers: of what
// it was asked again and had done already it says that it is not there.
type unsure struct {
	asked atomic.Int64 // for changes
	lied  atomic.Int64
}

// answer is the answer to a change: each third that was made looks as if there
// had been nothing to change.
func (u *unsure) answer(err syscall.Errno) syscall.Errno {
	n := u.asked.Add(1)
	if err != 0 || n%3 != 0 {
		return err
	}
	u.lied.Add(1)
	return [...]syscall.Errno{syscall.ENOENT, syscall.ESTALE}[n/3%2]
}

// unsureNode is a file or directory of it. The one that is called broken cannot
// be looked at, and renames that must not replace are not known, as on NFS.
type unsureNode struct {
	*fs.LoopbackNode
	server *unsure
}

var _ interface {
	fs.NodeRenamer
	fs.NodeUnlinker
	fs.NodeLookuper
	fs.NodeWrapChilder
} = (*unsureNode)(nil)

func (n *unsureNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &unsureNode{child.(*fs.LoopbackNode), n.server}
}

func (n *unsureNode) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if flags != 0 {
		return syscall.EINVAL
	}
	return n.server.answer(n.LoopbackNode.Rename(ctx, name, parent, newName, flags))
}

func (n *unsureNode) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.server.answer(n.LoopbackNode.Unlink(ctx, name))
}

func (n *unsureNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if name == "broken" {
		return nil, syscall.EIO
	}
	return n.LoopbackNode.Lookup(ctx, name, out)
}

// mountUnsure mounts a directory.
func mountUnsure(t *testing.T, backing string) (string, *unsure) {
	t.Helper()
	u, mountpoint := &unsure{}, t.TempDir()
	root, err := fs.NewLoopbackRoot(backing)
	if err != nil {
		t.Fatal(err)
	}
	top := &unsureNode{root.(*fs.LoopbackNode), u}
	top.RootData.RootNode = top
	server, err := fs.Mount(mountpoint, top, &fs.Options{MountOptions: fuse.MountOptions{DirectMount: true, FsName: "unsure"}})
	if err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
		server.Wait()
	})
	return mountpoint, u
}

// TestJanitors_UnsureServer proves J1, J3 and J5 on a file system that says of
// what it has done that there was nothing to do, and that can tell nothing of one
// of the files: two janitors take all others, one is killed on the way and what it
// has claimed is taken over, and nothing is lost.
func TestJanitors_UnsureServer(t *testing.T) {
	backing := t.TempDir()
	const files = 300
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(backing, name)
		old := time.Now().Add(-time.Hour)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	for i := range files {
		put(fmt.Sprint("f", i), record(fmt.Sprint(i, "/a"))+record(fmt.Sprint(i, "/b")))
	}
	put("broken", record("broken"))
	put("garbage", "garbage\n")
	dir, server := mountUnsure(t, backing)
	var children []child
	var cmds []*exec.Cmd
	for range 2 {
		children = append(children, child{Dir: dir, Store: t.TempDir(), ID: NewID(), Age: none, ClaimTimeout: 2 * time.Second})
	}
	children[0].Crash, children[0].At = "stored", 1
	cmds = append(cmds, children[0].start(t))
	cmds[0].Wait()
	if n := len(filesBelow(t, backing)); n != files+2 {
		t.Errorf("%d files when the first one is killed, want all", n)
	}
	cmds = []*exec.Cmd{children[1].start(t)}
	defer func() { // before the file system
		for _, cmd := range cmds {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}()
	waitFor(t, "directory with nothing but the broken file", func() bool { return len(filesBelow(t, backing)) == 1 })
	for _, cmd := range cmds {
		cmd.Process.Kill()
		cmd.Wait()
	}
	var all []arrival
	for _, c := range children {
		pending, _ := stored(t, c.Store)
		all = append(all, pending...)
	}
	once, repeats := checkRepeats(t, all)
	if len(once) != 2*files {
		t.Errorf("%d messages, want %d", len(once), 2*files)
	}
	if inside, err := os.ReadDir(filepath.Join(backing, quarantineName)); err != nil || len(inside) != 2 {
		t.Errorf("the quarantine has %v, %v", inside, err)
	}
	if server.lied.Load() == 0 {
		t.Error("the server never lied")
	}
	t.Logf("%d messages, %d repeats, %d of %d answers were wrong", len(once), repeats, server.lied.Load(), server.asked.Load())
}
