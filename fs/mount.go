package fs

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// maxWrite is the largest WRITE and READ request in bytes.
const maxWrite = 128 << 10

// maxBackground is how many RELEASEs may be under way at once.
const maxBackground = 64

// Mount is a mounted file system that is being served.
type Mount struct {
	dir    string
	direct bool // mounted by ourselves, not by fusermount3
	server *fuse.Server
	served sync.WaitGroup
	done   chan struct{}
}

// Mount mounts the file system on a directory and serves it. When it returns
// the mount is usable. A dead mount of a former daemon that is in the way is
// replaced.
//
// As root it mounts by itself, for all users; otherwise fusermount3 does, for
// the user alone.
func (fs *FS) Mount(dir string) (*Mount, error) {
	dir, err := resolveParent(dir)
	if err != nil {
		return nil, fmt.Errorf("mount on %q: %w", dir, err)
	}
	m := &Mount{dir: dir, direct: os.Geteuid() == 0, done: make(chan struct{})}
	source := dir
	if !m.direct {
		if err := detachDead(dir); err != nil {
			return nil, fmt.Errorf("mount on %q: %w", dir, err)
		}
	}
	if m.direct {
		fd, err := attach(dir)
		if err != nil {
			return nil, fmt.Errorf("mount on %q: %w", dir, err)
		}
		// go-fuse's way to say: it is mounted, serve this descriptor.
		source = fmt.Sprintf("/dev/fd/%d", fd)
	}
	server, err := fuse.NewServer(fs.wrapped(), source, &fuse.MountOptions{
		FsName: "spoolfs", Name: "spoolfs",
		Options:  []string{"nosuid", "nodev", "noexec"},
		MaxWrite: maxWrite, MaxBackground: maxBackground,
		DisableXAttrs: true, DisableReadDirPlus: true,
		// With O_TRUNC in the OPEN, a SETATTR of the size without a handle is
		// truncate(2) and nothing else.
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC,
		PanicHandler:      func(cause any) fuse.Status { return fs.recovered(cause) },
		Logger:            log.New(io.Discard, "", 0),
	})
	if err != nil {
		if m.direct {
			err = errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH))
		}
		return nil, fmt.Errorf("mount on %q: %w%s", dir, err, mountAdvice())
	}
	m.server = server
	fs.mu.Lock()
	fs.prune = server.PruneNotify
	fs.mu.Unlock()
	m.served.Go(func() {
		defer close(m.done)
		server.Serve()
	})
	m.served.Go(func() { fs.tend(fs.tendNames, m.done) })
	m.served.Go(func() { fs.tend(fs.tendFiles, m.done) })
	return m, nil
}

// resolveParent follows links, as a mount is on a directory and not on a name. The
// last element is not asked if it is a directory: it may be a dead mount.
func resolveParent(dir string) (string, error) {
	for range 40 { // as many as the kernel follows
		target, err := os.Readlink(dir)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(dir), target)
		}
		dir = target
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	return filepath.Join(parent, filepath.Base(dir)), err
}

// mountAdvice says what is missing on this machine for a mount.
func mountAdvice() string {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return " (there is no /dev/fuse here: load the fuse module, or give the container the device)"
	}
	if os.Geteuid() != 0 {
		return " (only root mounts without help: install fuse3 for fusermount3)"
	}
	return ""
}

// Done is closed when the file system is no longer served: after Unmount, or
// because somebody else has unmounted it.
func (m *Mount) Done() <-chan struct{} { return m.done }

// Unmount takes the mount away and waits until nothing is served any more.
// While files are open on it, it only disappears from the tree; it is then up
// to the caller to wait for Done or to exit, which ends them with an error.
func (m *Mount) Unmount() error {
	err := m.detach()
	if err != nil {
		return fmt.Errorf("unmount %q: %w", m.dir, err)
	}
	return nil
}

func (m *Mount) detach() error {
	select {
	case <-m.done:
		return nil
	default:
	}
	if !m.direct {
		return m.server.Unmount()
	}
	err := unix.Unmount(m.dir, 0)
	if errors.Is(err, unix.EBUSY) {
		return unix.Unmount(m.dir, unix.MNT_DETACH)
	}
	if err == nil {
		m.served.Wait()
	}
	return err
}
