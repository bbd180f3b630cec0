package fs

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// connection is where requests come from and replies go to. Many goroutines use
// it at once.
type connection interface {
	// Read waits for a request and puts it into buf. It returns errStopped after
	// Stop, and errGone when there is no mount any more.
	Read(buf []byte) (int, error)

	// Again has another Read see what there is to read: who has read is told of it
	// once, and may be about to wait for something else.
	Again()

	// Write sends a reply or a notification as one message.
	Write(message []byte) error

	// Stop ends all Reads. Replies can still be written.
	Stop()

	// Close gives up what the connection has besides its descriptor.
	Close() error
}

var (
	errStopped = errors.New("no more requests are taken")
	errGone    = errors.New("the mount is gone")
)

// kernel is the connection to the kernel, on a descriptor that is nonblocking
// and belongs to somebody else: it outlives whoever serves it.
type kernel struct {
	fd      int
	wait    int // epoll, with fd and wake
	wake    int // eventfd, readable after Stop
	stopped atomic.Bool
}

var _ connection = (*kernel)(nil)

func newKernel(fd int) (*kernel, error) {
	k := &kernel{fd: fd, wait: -1, wake: -1}
	if err := k.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("watch the connection: %w", err), k.Close())
	}
	return k, nil
}

func (k *kernel) open() (err error) {
	// A read that waits for a request could not be ended.
	if err = unix.SetNonblock(k.fd, true); err != nil {
		return err
	}
	if k.wait, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if k.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	// Of a request one waiter is told, once: else a second one is woken in vain.
	if err = unix.EpollCtl(k.wait, unix.EPOLL_CTL_ADD, k.fd, k.requests()); err != nil {
		return err
	}
	return unix.EpollCtl(k.wait, unix.EPOLL_CTL_ADD, k.wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(k.wake)})
}

// requests are the events of the connection that are waited for.
func (k *kernel) requests() *unix.EpollEvent {
	return &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(k.fd)}
}

// Again has the waiters told anew.
func (k *kernel) Again() { _ = unix.EpollCtl(k.wait, unix.EPOLL_CTL_MOD, k.fd, k.requests()) }

// Read takes the next request.
func (k *kernel) Read(buf []byte) (int, error) {
	for {
		if k.stopped.Load() {
			return 0, errStopped
		}
		n, err := unix.Read(k.fd, buf)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, unix.EAGAIN):
			var events [1]unix.EpollEvent
			_, err = unix.EpollWait(k.wait, events[:], -1)
		case errors.Is(err, unix.ENOENT):
			continue // its process has given it up
		case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENOTCONN), errors.Is(err, unix.ECONNABORTED):
			return 0, errGone
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("read a request: %w", err)
		}
	}
}

// Write sends a message.
func (k *kernel) Write(message []byte) error {
	for {
		_, err := unix.Write(k.fd, message)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Stop ends all Reads.
func (k *kernel) Stop() {
	k.stopped.Store(true)
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	_, _ = unix.Write(k.wake, one) // which fails only if it is readable already
}

// Close closes what belongs to the connection itself.
func (k *kernel) Close() error {
	var err error
	for _, fd := range []*int{&k.wake, &k.wait} {
		if *fd >= 0 {
			err = errors.Join(err, unix.Close(*fd))
			*fd = -1
		}
	}
	return err
}
