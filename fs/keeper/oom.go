package keeper

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const oomScore = "/proc/self/oom_score_adj"

// ProtectSelf has the kernel kill others first when memory is short, which only
// root may ask for, and lets workers lock as much memory as they need. It returns
// the oom_score_adj that was, which the workers get, and what could not be done.
func ProtectSelf() (was string, err error) {
	text, err := os.ReadFile(oomScore)
	if err != nil || os.Geteuid() != 0 {
		return "", err
	}
	unlimited := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	err = errors.Join(
		os.WriteFile(oomScore, []byte("-1000"), 0),
		unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unlimited),
	)
	return strings.TrimSpace(string(text)), err
}

// restoreOOM gives a worker its oom_score_adj. It may have ended.
func restoreOOM(pid int, score string) {
	if score != "" {
		os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(score), 0)
	}
}
