package janitor

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Watch tells when something has been written into the directory itself, until
// ctx ends, and closes the channel then. It only saves time: what it misses is
// found by the next pass.
func (b *Bare) Watch(ctx context.Context) (<-chan struct{}, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch the directory below the mount: %w", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	// The descriptor leads to the directory, whatever is mounted on it.
	_, err = unix.InotifyAddWatch(fd, fmt.Sprintf("/proc/self/fd/%d", b.fd), unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO|unix.IN_ONLYDIR)
	if err != nil {
		events.Close()
		return nil, fmt.Errorf("watch the directory below the mount: %w", err)
	}
	wake := make(chan struct{}, 1)
	context.AfterFunc(ctx, func() { events.Close() })
	go func() {
		defer close(wake)
		buf := make([]byte, 64<<10)
		for {
			if _, err := events.Read(buf); err != nil {
				return // closed
			}
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	}()
	return wake, nil
}
