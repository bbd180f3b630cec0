package fs

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// sameProcess reports whether two threads, as FUSE requests name them, belong
// to one process. A thread that is gone is the same only as itself.
func sameProcess(a, b uint32) bool {
	if a == 0 || b == 0 {
		return false // outside of our pid namespace: it may be anybody
	}
	if a == b {
		return true
	}
	pa, okA := threadGroup(a)
	pb, okB := threadGroup(b)
	return okA && okB && pa == pb
}

// threadGroup returns the process that a thread belongs to.
func threadGroup(thread uint32) (int, bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "Tgid:"); ok {
			pid, err := strconv.Atoi(strings.TrimSpace(v))
			return pid, err == nil
		}
	}
	return 0, false
}
