package rabbit

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A procID names a process for good: a pid comes again, with another start
// time.
type procID struct {
	pid   int
	start string // clock ticks since boot, as in /proc/<pid>/stat
}

// descendants lists the children of pid, their children and so on.
func descendants(pid int) []procID {
	children := make(map[int][]procID)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		id, parent, _, ok := readStat(path)
		if ok {
			children[parent] = append(children[parent], id)
		}
	}
	found := children[pid]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// readStat reads the fields 1, 22, 4 and 3 of a stat file. Field 2, the name,
// may hold blanks and parentheses.
func readStat(path string) (id procID, parent int, state string, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return procID{}, 0, "", false
	}
	head, tail, _ := strings.Cut(string(b), " (")
	fields := strings.Fields(tail[strings.LastIndexByte(tail, ')')+1:])
	if len(fields) < 20 {
		return procID{}, 0, "", false
	}
	id.pid, _ = strconv.Atoi(head)
	id.start = fields[19]
	parent, _ = strconv.Atoi(fields[1])
	return id, parent, fields[0], true
}

// alive reports whether the process still runs. One that has ended and whose
// parent has not asked for its status does not.
func (p procID) alive() bool {
	id, _, state, ok := readStat(fmt.Sprintf("/proc/%d/stat", p.pid))
	return ok && id == p && state != "Z" && state != "X"
}

func (p procID) kill() {
	if p.alive() {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
}
