package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// mountPath undoes how mountinfo writes a path.
var mountPath = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// isMounted reports whether something is mounted on a directory. It asks the
// kernel's table and not the mount, which may not answer.
func isMounted(dir string) bool {
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(parent, filepath.Base(dir))
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && mountPath.Replace(fields[4]) == dir {
			return true
		}
	}
	return false
}

// unmount takes a mount away that its daemon has left.
func unmount(dir string) error {
	if os.Geteuid() == 0 {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
		return nil
	}
	if out, err := exec.Command("fusermount3", "-uz", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("unmount %s: %w: %s", dir, err, out)
	}
	return nil
}
