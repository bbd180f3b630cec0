package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// spoolMount is a mounted spool, as the kernel tells of it: nobody asks the
// daemon, which may hang.
type spoolMount struct {
	ID         int
	Device     string // major:minor; the minor number is that of the FUSE connection
	Mountpoint string
	UID        int // of who has mounted it, as the kernel says; -1 if it does not
}

// isTrusted reports whether what a mount says of itself is believed without its being
// named: any user can mount a file system of this type that says what he likes.
func (m spoolMount) isTrusted(euid int) bool { return m.UID == 0 || m.UID == euid }

// trusted are the mounts of root and of a user.
func trusted(mounts []spoolMount, euid int) []spoolMount {
	return slices.DeleteFunc(slices.Clone(mounts), func(m spoolMount) bool { return !m.isTrusted(euid) })
}

// spoolMounts reads /proc/self/mountinfo. A spool that is mounted on several
// places by bind mounts is listed once, and of mounts that lie over each other the
// one that is seen.
func spoolMounts(mountinfo io.Reader) ([]spoolMount, error) {
	var mounts []spoolMount
	lines := bufio.NewScanner(mountinfo)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m, ok := parseMount(lines.Text())
		if !ok {
			continue
		}
		mounts = slices.DeleteFunc(mounts, func(o spoolMount) bool { return o.Mountpoint == m.Mountpoint })
		if !slices.ContainsFunc(mounts, func(o spoolMount) bool { return o.Device == m.Device }) {
			mounts = append(mounts, m)
		}
	}
	return mounts, lines.Err()
}

// parseMount reads a line of mountinfo, and reports whether it is of a spool:
//
//	36 35 0:57 / /run/spool rw,nosuid shared:1 - fuse.spoolfs spoolfs rw,user_id=0,group_id=0
func parseMount(line string) (spoolMount, bool) {
	mount, super, _ := strings.Cut(line, " - ")
	fields, of := strings.Fields(mount), strings.Fields(super)
	if len(fields) < 5 || len(of) == 0 || of[0] != "fuse.spoolfs" {
		return spoolMount{}, false
	}
	id, err := strconv.Atoi(fields[0])
	return spoolMount{ID: id, Device: fields[2], Mountpoint: unescapeOctal(fields[4]), UID: mountedBy(of)}, err == nil
}

// mountedBy reads the user from the part of a line behind the hyphen.
func mountedBy(of []string) int {
	for option := range strings.SplitSeq(of[len(of)-1], ",") {
		if text, ok := strings.CutPrefix(option, "user_id="); ok {
			if uid, err := strconv.Atoi(text); err == nil {
				return uid
			}
		}
	}
	return -1
}

// unescapeOctal undoes the escapes of mountinfo, such as \040 for a space.
func unescapeOctal(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func readMounts() ([]spoolMount, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return spoolMounts(f)
}

// findMount finds the spool of a path, or the only one if there is no path.
func findMount(path string) (spoolMount, error) {
	mounts, err := readMounts()
	if err != nil {
		return spoolMount{}, withCode(exitIO, err)
	}
	return chooseMount(mounts, path, os.Geteuid())
}

// chooseMount is findMount among mounts, for a user.
func chooseMount(mounts []spoolMount, path string, euid int) (spoolMount, error) {
	if path != "" {
		if m, ok := mountAt(mounts, path); ok {
			return m, nil
		}
		return spoolMount{}, withCode(exitUnavailable, fmt.Errorf("no spool is mounted on %s%s", path, others(mounts)))
	}
	ours := trusted(mounts, euid)
	switch {
	case len(ours) == 1:
		return ours[0], nil
	case len(ours) > 1:
		return spoolMount{}, withCode(exitUsage, fmt.Errorf("say which spool, as the last argument%s", others(ours)))
	case len(mounts) > 0:
		return spoolMount{}, withCode(exitUnavailable, fmt.Errorf("no spool is mounted by you or root: say which one, as the last argument%s", others(mounts)))
	}
	return spoolMount{}, withCode(exitUnavailable, errors.New(`no spool is mounted: start one with "spoolfs mount"`))
}

func others(mounts []spoolMount) string {
	if len(mounts) == 0 {
		return `: start it with "spoolfs mount"`
	}
	var paths []string
	for _, m := range mounts {
		paths = append(paths, m.Mountpoint)
	}
	return "; mounted are " + strings.Join(paths, " ")
}

// mountAt finds the spool that is mounted on a path.
func mountAt(mounts []spoolMount, path string) (spoolMount, bool) {
	abs, err := absolute(path)
	if err != nil {
		return spoolMount{}, false
	}
	for _, try := range []string{abs, followed(abs)} {
		i := slices.IndexFunc(mounts, func(m spoolMount) bool { return m.Mountpoint == try })
		if i >= 0 {
			return mounts[i], true
		}
	}
	return spoolMount{}, false
}

// absolute is filepath.Abs without asking the working directory, which may be the
// mount of a daemon that hangs.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	dir, err := syscall.Getwd()
	return filepath.Join(dir, path), err
}

// followed follows links, and asks no directory that is a mountpoint itself.
func followed(path string) string {
	for range 40 {
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return resolve(path)
}
