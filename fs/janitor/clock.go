package janitor

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock is what time it is.
type clock struct {
	// mono is the time since some moment. It neither jumps nor stands still.
	mono func() time.Duration

	// server is what time it is for the file system that a directory of ours is
	// on. Asking renews the directory's times.
	server func(fd int) (time.Time, error)
}

// systemClock is the real one. A bare directory is on a local disk, with the
// clock of this machine.
func systemClock(local bool) clock {
	began := time.Now()
	c := clock{mono: func() time.Duration { return time.Since(began) }, server: touch}
	if local {
		c.server = func(int) (time.Time, error) { return time.Now(), nil }
	}
	return c
}

// touch has the file system set the times of a directory, and returns them.
func touch(fd int) (time.Time, error) {
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	if err := unix.UtimesNanoAt(fd, ".", now, 0); err != nil {
		return time.Time{}, err
	}
	st, err := statAt(fd, ".")
	return time.Unix(0, st.mtime), err
}
