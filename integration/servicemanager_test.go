package integration

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// serviceManager is a stand-in for systemd: it listens to what a service tells,
// and keeps its descriptors over a restart.
type serviceManager struct {
	t    testing.TB
	conn *net.UnixConn
	wait sync.WaitGroup

	mu    sync.Mutex
	told  []string
	names []string
	fds   map[string]int
}

func newServiceManager(t testing.TB) *serviceManager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	m := &serviceManager{t: t, conn: conn, fds: map[string]int{}}
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

func (m *serviceManager) listen() {
	text, control := make([]byte, 4096), make([]byte, 256)
	for {
		n, c, _, _, err := m.conn.ReadMsgUnix(text, control)
		if err != nil {
			return
		}
		m.hear(lines(string(text[:n])), control[:c])
	}
}

func (m *serviceManager) hear(told []string, control []byte) {
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

func (m *serviceManager) forgetLocked(name string) {
	if fd, ok := m.fds[name]; ok {
		unix.Close(fd)
		delete(m.fds, name)
		m.names = slices.DeleteFunc(m.names, func(n string) bool { return n == name })
	}
}

func (m *serviceManager) has(line string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.told, line)
}

// stored is how many descriptors are kept.
func (m *serviceManager) stored() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.fds)
}

// equip has the next start of a spool find what systemd would give it.
func (m *serviceManager) equip(s *spool) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.names {
		fd, err := unix.FcntlInt(uintptr(m.fds[name]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			m.t.Fatal(err)
		}
		// Not blocking, or os/exec would make the device, which is shared, so.
		s.files = append(s.files, os.NewFile(uintptr(fd), name))
	}
	s.env = []string{
		"NOTIFY_SOCKET=" + m.conn.LocalAddr().String(), "FDSTORE=8",
		fmt.Sprintf("LISTEN_FDS=%d", len(s.files)), "LISTEN_FDNAMES=" + strings.Join(m.names, ":"),
	}
}
