package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// errMountpointInUse says that another daemon serves, or is about to serve, the
// same mountpoint.
var errMountpointInUse = errors.New("mountpoint is in use by another daemon")

// lockMountpoint takes the lock of a mountpoint, so that there is one daemon for
// each. It is held until it is closed or the process is gone, however that ends.
//
// The lock is a unix socket in the abstract namespace, whose name says what the
// mountpoint is: the directory that it lies in, by device and inode, and its own
// name. Nothing is left on a disk, the mountpoint itself is not asked, which
// may be a dead mount or one whose daemon is stopped, and the kernel tells who
// holds it. Since anybody may take any name there, it counts only if it is held
// by root or by our own user.
func lockMountpoint(dir string) (io.Closer, error) {
	name, err := mountpointName(dir)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err == nil {
		return newMountLock(l), nil
	}
	if !errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("lock the mountpoint %s: %w", dir, err)
	}
	switch owner, err := ownerOf(name); {
	case errors.Is(err, unix.ECONNREFUSED): // it has just gone
		return nil, errMountpointInUse
	case err != nil:
		return nil, fmt.Errorf("%w: it does not say which: %w", errMountpointInUse, err)
	case owner.Uid != 0 && int(owner.Uid) != os.Geteuid():
		return noLock{}, nil // a user who plays with names stops nobody
	default:
		return nil, fmt.Errorf("%w, process %d: stop it, or mount elsewhere", errMountpointInUse, owner.Pid)
	}
}

// mountLock is the lock of a mountpoint.
type mountLock struct {
	listener *net.UnixListener
	callers  sync.WaitGroup
}

func newMountLock(l *net.UnixListener) *mountLock {
	m := &mountLock{listener: l}
	// Who wants to know the owner connects, and would fill the queue.
	m.callers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	})
	return m
}

// Close gives the lock up.
func (m *mountLock) Close() error {
	err := m.listener.Close()
	m.callers.Wait()
	return err
}

// noLock is the lock of a mountpoint whose name a stranger has taken. What is
// mounted is still found out by the mount.
type noLock struct{}

// Close is part of io.Closer.
func (noLock) Close() error { return nil }

// mountpointName names the lock of a mountpoint. The last element of the path is
// not asked, unless it is a link.
func mountpointName(dir string) (string, error) {
	for range 40 { // as many links as the kernel follows
		target, err := os.Readlink(dir)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(dir), target)
		}
		dir = target
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Dir(dir), &st); err != nil {
		return "", fmt.Errorf("lock the mountpoint %s: %w", dir, err)
	}
	sum := sha256.Sum256([]byte(filepath.Base(dir)))
	return fmt.Sprintf("@spoolfs-mount/%x/%x/%x", st.Dev, st.Ino, sum[:16]), nil
}

// ownerOf asks the kernel who listens on a socket. The owner is not asked: it
// may be stopped.
func ownerOf(name string) (*unix.Ucred, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		return nil, err
	}
	return unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
}

// awaitMountpoint waits for the lock of a mountpoint whose last daemon is dying.
func awaitMountpoint(ctx context.Context, dir string) (io.Closer, error) {
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		lock, err := lockMountpoint(dir)
		if !errors.Is(err, errMountpointInUse) {
			return lock, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, withCode(exitTemporary, err)
		}
	}
}
