package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"spoolfs/fs/keeper/keepertest"
)

// serviceManager is a stand-in for systemd.
type serviceManager struct{ *keepertest.Manager }

func newServiceManager(t testing.TB) *serviceManager {
	t.Helper()
	return &serviceManager{keepertest.NewManager(t)}
}

// equip has the next start of a spool find what systemd would give it.
func (m *serviceManager) equip(s *spool) {
	s.t.Helper()
	names, fds := m.Copies()
	for i, fd := range fds {
		// Not blocking, or os/exec would make the device, which is shared, so.
		s.files = append(s.files, os.NewFile(uintptr(fd), names[i]))
	}
	s.env = []string{
		"NOTIFY_SOCKET=" + m.Socket(), "FDSTORE=8",
		fmt.Sprintf("LISTEN_FDS=%d", len(s.files)), "LISTEN_FDNAMES=" + strings.Join(names, ":"),
	}
}
