// Package keepertest has a stand-in for a service manager, for tests: it listens to
// what a service tells it, and keeps descriptors over a restart as systemd does.
package keepertest

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Manager is the stand-in. It lives as long as its test.
type Manager struct {
	t    testing.TB
	conn *net.UnixConn
	wait sync.WaitGroup

	mu    sync.Mutex
	told  []string
	names []string // of what is kept, in the order in which it came
	fds   map[string]int
}

// NewManager starts one.
func NewManager(t testing.TB) *Manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	m := &Manager{t: t, conn: conn, fds: map[string]int{}}
	m.wait.Go(m.listen)
	t.Cleanup(func() {
		conn.Close()
		m.wait.Wait()
		for _, fd := range m.fds {
			unix.Close(fd)
		}
	})
	return m
}

// Socket is where it listens.
func (m *Manager) Socket() string { return m.conn.LocalAddr().String() }

func (m *Manager) listen() {
	text, control := make([]byte, 4096), make([]byte, 256)
	for {
		n, c, _, _, err := m.conn.ReadMsgUnix(text, control)
		if err != nil {
			return
		}
		m.hear(strings.Split(strings.TrimSuffix(string(text[:n]), "\n"), "\n"), control[:c])
	}
}

func (m *Manager) hear(told []string, control []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, told...)
	name := ""
	for _, line := range told {
		if n, ok := strings.CutPrefix(line, "FDNAME="); ok {
			name = n
		}
	}
	if slices.Contains(told, "FDSTOREREMOVE=1") {
		m.forgetLocked(name)
	}
	messages, _ := unix.ParseSocketControlMessage(control)
	for _, message := range messages {
		fds, _ := unix.ParseUnixRights(&message)
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			m.forgetLocked(name)
			m.fds[name] = fd
			m.names = append(m.names, name)
		}
	}
}

func (m *Manager) forgetLocked(name string) {
	if fd, ok := m.fds[name]; ok {
		unix.Close(fd)
		delete(m.fds, name)
		m.names = slices.DeleteFunc(m.names, func(n string) bool { return n == name })
	}
}

// Told lists all lines that it was told.
func (m *Manager) Told() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.told)
}

// Has reports whether it was told a line.
func (m *Manager) Has(line string) bool { return slices.Contains(m.Told(), line) }

// Stored is how many descriptors it keeps.
func (m *Manager) Stored() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.fds)
}

// Copies are duplicates of the descriptors that it keeps, which belong to the
// caller, and their names.
func (m *Manager) Copies() (names []string, fds []int) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.names {
		fd, err := unix.FcntlInt(uintptr(m.fds[name]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			m.t.Fatalf("%s: %v", name, err)
		}
		fds = append(fds, fd)
	}
	return slices.Clone(m.names), fds
}
