package fs

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"spoolfs/fs/device"
)

// Mount is a mounted file system that is being served.
type Mount struct {
	fs     *FS
	device *device.Device // nil if the mount belongs to another process
	conn   *kernel
	server *server
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
	d, err := device.Open(dir)
	if err != nil {
		return nil, err
	}
	fs.memory.NextEpoch()
	fs.memory.SetResends(d.Resend)
	err = fs.memory.SetInit(d.Init)
	var m *Mount
	if err == nil {
		m, err = fs.Serve(d.FD)
	}
	if err != nil {
		return nil, errors.Join(err, d.Detach(), d.Close())
	}
	m.device = d
	if err := d.Attach(); err != nil {
		return nil, errors.Join(err, m.Stop(), d.Close())
	}
	return m, nil
}

// Serve serves a connection that somebody else has made, and described in the
// memory. It does not close the descriptor.
func (fs *FS) Serve(fd int) (*Mount, error) {
	conn, err := newKernel(fd)
	if err != nil {
		return nil, err
	}
	m := &Mount{fs: fs, conn: conn, done: make(chan struct{})}
	if m.server, err = newServer(fs, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	fs.server.Store(m.server)
	fs.memory.CountStart()
	if err := m.server.takeUp(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	m.server.start()
	m.served.Go(func() {
		defer close(m.done)
		m.server.still()
	})
	m.served.Go(func() { fs.tend(fs.tendNames, m.done) })
	m.served.Go(func() { fs.tend(fs.tendFiles, m.done) })
	return m, nil
}

// Done is closed when the file system is no longer served: after Unmount, or
// because somebody else has unmounted it.
func (m *Mount) Done() <-chan struct{} { return m.done }

// Stop takes no more requests, and returns when those in hand are answered and
// nothing is done any more. The connection stays as it is.
func (m *Mount) Stop() error {
	m.server.stop()
	m.served.Wait()
	m.fs.server.CompareAndSwap(m.server, nil)
	return m.conn.Close()
}

// Unmount takes the mount away and waits until nothing is served any more.
// While files are open on it, it only disappears from the tree; it is then up
// to the caller to wait for Done or to exit, which ends them with an error.
func (m *Mount) Unmount() error {
	select {
	case <-m.done:
		return nil
	default:
	}
	if err := m.device.Detach(); err != nil {
		return err
	}
	if m.isGone() {
		return errors.Join(m.Stop(), m.device.Close())
	}
	return nil
}

// isGone reports whether there is no mount any more.
func (m *Mount) isGone() bool {
	fds := []unix.PollFd{{Fd: int32(m.device.FD)}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&unix.POLLERR != 0
}
