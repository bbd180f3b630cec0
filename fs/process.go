package fs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is a process as the kernel numbers it; 0 is one that we cannot see.
type process int

// processOf returns the process that a thread belongs to, as FUSE requests name
// the thread that sent them.
func processOf(thread uint32) process {
	if thread == 0 {
		return 0 // outside of our pid namespace
	}
	// Signal 0 is not sent. The first thread of a process has its number; it is the
	// one that calls most of the time, and asking so costs a hundredth of /proc.
	if err := unix.Tgkill(int(thread), int(thread), 0); err == nil || errors.Is(err, unix.EPERM) {
		return process(thread)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "Tgid:"); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(v))
			return process(pid)
		}
	}
	return 0
}

// maxDescriptors is how many descriptors of a process are looked at.
const maxDescriptors = 256

// hasOpen reports whether a process has a descriptor of the file with a name and
// an inode number. A descriptor is gone before the FLUSH of its close is sent.
func (p process) hasOpen(ino uint64, name string) bool {
	dir := fmt.Sprintf("/proc/%d/", p)
	f, err := os.Open(dir + "fd")
	if err != nil {
		return false
	}
	defer f.Close()
	fds, _ := f.Readdirnames(maxDescriptors)
	for _, fd := range fds {
		// The link is cheap to read, and not followed: that would ask ourselves.
		target, err := os.Readlink(dir + "fd/" + fd)
		if err != nil || !strings.HasSuffix(strings.TrimSuffix(target, " (deleted)"), "/"+name) {
			continue
		}
		info, err := os.ReadFile(dir + "fdinfo/" + fd)
		if err == nil && strings.Contains(string(info), fmt.Sprintf("\nino:\t%d\n", ino)) {
			return true
		}
	}
	return false
}

// ending says how a process is ending, if it is.
type ending int

const (
	endingNot     ending = iota // it goes on, or ends as it wanted to
	endingKilled                // a signal ends it
	endingUnknown               // we may not know
)

// The fields of /proc/<pid>/stat that tell, counted from the one behind the name
// of the program, and the flag of a process that is ending.
const (
	statFlags    = 9 - 3
	statExitCode = 52 - 3
	pfExiting    = 0x4
)

// endingOf tells how the process of a thread is ending. PF_SIGNALED is no test:
// it is also set when a program with several threads ends normally.
func (fs *FS) endingOf(thread, uid uint32) ending {
	if thread == 0 {
		return endingUnknown
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", thread))
	if err != nil {
		return endingUnknown
	}
	e := parseEnding(text)
	// The kernel shows an exit code of 0 to those who may not see it.
	if e == endingUnknown && (fs.seesAll || int(uid) == os.Geteuid()) {
		return endingNot
	}
	return e
}

// parseEnding reads a line of /proc/<pid>/stat. endingUnknown is a process that
// ends with an exit code of 0, or with one that is hidden.
func parseEnding(stat []byte) ending {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= statExitCode {
		return endingUnknown
	}
	flags, err := strconv.ParseUint(string(fields[statFlags]), 10, 64)
	code, err2 := strconv.ParseUint(string(fields[statExitCode]), 10, 64)
	switch {
	case err != nil || err2 != nil:
		return endingUnknown
	case flags&pfExiting == 0:
		return endingNot
	case code&0x7f != 0:
		return endingKilled
	case code != 0:
		return endingNot
	}
	return endingUnknown
}

// seesEndings reports whether this process may see how those of other users end.
func seesEndings() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}
