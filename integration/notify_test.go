package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// inOrder reports whether lines that begin so were told one after the other.
func (m *serviceManager) inOrder(beginnings ...string) bool {
	for _, line := range m.Told() {
		if len(beginnings) > 0 && strings.HasPrefix(line, beginnings[0]) {
			beginnings = beginnings[1:]
		}
	}
	return len(beginnings) == 0
}

// TestServiceManager_Order: the service manager is told that a file can be written
// when one can, then what the state is, that there is progress, that the
// configuration is read again, and that it stops, after which nothing comes.
func TestServiceManager_Order(t *testing.T) {
	for name, args := range map[string][]string{"keeper": nil, "no keeper": {"--no-keeper"}} {
		t.Run(name, func(t *testing.T) {
			m := newServiceManager(t)
			s := newSpool(t, raceBinary, away, append(args, "--exchange", "x")...)
			m.equip(s)
			s.env = append(s.env, "WATCHDOG_USEC=120000000")
			s.launch()
			s.until("said to be ready", func() bool { return m.Has("READY=1") })
			if err := os.WriteFile(filepath.Join(s.dir, "f"), []byte(record("a")), 0o644); err != nil {
				t.Fatal(err)
			}
			s.untilIngested(1)
			want := []string{"READY=1", "STATUS=", "STATUS=warning: waiting, 1 waiting", "WATCHDOG=1"}
			if name == "keeper" {
				want = append([]string{"FDSTORE=1", "FDSTORE=1"}, want...)
			}
			s.until("said to have one message", func() bool { return m.inOrder(want...) })
			s.signal(syscall.SIGHUP)
			want = append(want, "RELOADING=1", "MONOTONIC_USEC=", "READY=1")
			s.until("said to have read its configuration", func() bool { return m.inOrder(want...) })
			if code := s.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if want = append(want, "STOPPING=1"); !m.inOrder(want...) {
				t.Errorf("told %q, want %q", m.Told(), want)
			}
			told := m.Told()
			after := told[slices.Index(told, "STOPPING=1"):]
			if slices.Contains(after, "READY=1") || len(slices.DeleteFunc(after, func(l string) bool { return l != "STOPPING=1" })) != 1 {
				t.Errorf("told after STOPPING=1: %q", after)
			}
		})
	}
}
