package keeper

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// The names of what is left with a service manager.
const (
	DeviceName = "spoolfs-device"
	MemoryName = "spoolfs-memory"
)

// Manager is a service manager that speaks the protocol of sd_notify(3). A nil
// Manager is none.
type Manager struct {
	// Socket is where it listens. A leading @ means an abstract one.
	Socket string

	// Stores says that it keeps descriptors over a restart.
	Stores bool
}

// Notify tells lines such as "READY=1".
func (m *Manager) Notify(lines ...string) error { return m.send(nil, lines...) }

// Reloading tells that the configuration is being read again, which READY=1 ends.
func (m *Manager) Reloading() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	return m.Notify("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000))
}

// store leaves a descriptor, or a newer one for it, with the manager.
func (m *Manager) store(name string, fd int) error {
	if m == nil || !m.Stores {
		return nil
	}
	return m.send(unix.UnixRights(fd), "FDSTORE=1", "FDNAME="+name)
}

// Forget takes back what was left.
func (m *Manager) Forget() error {
	if m == nil || !m.Stores {
		return nil
	}
	for _, name := range []string{DeviceName, MemoryName} {
		if err := m.Notify("FDSTOREREMOVE=1", "FDNAME="+name); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) stores() bool { return m != nil && m.Stores }

// managerTimeout is how long a manager may not read what it is told: it must not
// hold up the replacement of a worker.
var managerTimeout = unix.Timeval{Sec: 1}

func (m *Manager) send(rights []byte, lines ...string) error {
	if m == nil || m.Socket == "" {
		return nil
	}
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	defer unix.Close(socket)
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &managerTimeout); err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	text := []byte(strings.Join(lines, "\n"))
	if err := unix.Sendmsg(socket, text, rights, &unix.SockaddrUnix{Name: m.Socket}, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("tell the service manager %q: %w", lines, err)
	}
	return nil
}
