package fs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// userReport is what a user of the mount says at its end.
type userReport struct {
	Lines   map[string]int // how often each is to be there
	Files   int
	Longest time.Duration // that a call has taken
	Call    string        // which that was
}

// mountUser uses the mount in all sorts of ways until its input ends.
type mountUser struct {
	dir, name string
	r         *rand.Rand
	n         int
	report    userReport
}

func runUser(args string) error {
	words := strings.Fields(args)
	seed, err := strconv.ParseUint(words[2], 10, 64)
	if err != nil {
		return err
	}
	u := &mountUser{dir: words[0], name: words[1], r: rand.New(rand.NewPCG(seed, 0)), report: userReport{Lines: map[string]int{}}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	ways := []func() error{
		u.writeOnce, u.writeSlowly, u.appendTwice, u.renameHeld, u.reopenHeld, u.unlinkOpen, u.writeMuch,
		u.inDirectory, u.renameOpen, u.cutOff, u.readBack, u.replace,
	}
	for {
		select {
		case <-ended:
			return json.NewEncoder(os.Stdout).Encode(u.report)
		default:
		}
		u.n++
		way := u.r.IntN(len(ways))
		if err := ways[way](); err != nil {
			return fmt.Errorf("way %d: %w", way, err)
		}
		u.report.Files++
	}
}

func (u *mountUser) path(suffix string) string {
	return filepath.Join(u.dir, fmt.Sprintf("%s.%d%s", u.name, u.n, suffix))
}

// lines makes lines of the current file, each of which is to be there so many
// times.
func (u *mountUser) lines(what string, n, times int) string {
	var b strings.Builder
	for i := range n {
		text := line(fmt.Sprintf("%s.%d.%s.%d", u.name, u.n, what, i))
		u.report.Lines[strings.TrimSuffix(text, "\n")] = times
		b.WriteString(text)
	}
	return b.String()
}

// timed measures a call.
func (u *mountUser) timed(call func() error) error {
	start := time.Now()
	err := call()
	if d := time.Since(start); d > u.report.Longest {
		_, file, line, _ := runtime.Caller(1)
		_, _, above, _ := runtime.Caller(2)
		u.report.Longest, u.report.Call = d, fmt.Sprintf("%s:%d from %d", filepath.Base(file), line, above)
	}
	return err
}

func (u *mountUser) open(path string, flags int) (f *os.File, err error) {
	err = u.timed(func() error { f, err = os.OpenFile(path, flags, 0o600); return err })
	return f, err
}

func (u *mountUser) write(f *os.File, text string) error {
	return u.timed(func() error { _, err := f.WriteString(text); return err })
}

func (u *mountUser) put(path string, flags int, texts ...string) error {
	f, err := u.open(path, flags)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if err := u.write(f, text); err != nil {
			return err
		}
	}
	return u.timed(f.Close)
}

const fresh = os.O_CREATE | os.O_EXCL | os.O_WRONLY

func (u *mountUser) writeOnce() error { return u.put(u.path(""), fresh, u.lines("a", 1, 1)) }

func (u *mountUser) writeSlowly() error {
	f, err := u.open(u.path(""), fresh)
	if err != nil {
		return err
	}
	for i := range 3 {
		if err := u.write(f, u.lines(fmt.Sprint("s", i), 1+u.r.IntN(3), 1)); err != nil {
			return err
		}
		if i == 1 {
			if err := u.timed(f.Sync); err != nil {
				return err
			}
		}
		time.Sleep(time.Duration(u.r.IntN(20)) * time.Millisecond)
	}
	return u.timed(f.Close)
}

func (u *mountUser) appendTwice() error {
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	a, b := u.lines("a", 2, 1), u.lines("b", 2, 1)
	if err := u.put(u.path(""), flags, a[:20], a[20:]); err != nil {
		return err
	}
	return u.put(u.path(""), flags, b)
}

func (u *mountUser) renameHeld() error {
	if err := u.put(u.path(".tmp"), fresh, u.lines("h", 3, 1)); err != nil {
		return err
	}
	return u.timed(func() error { return os.Rename(u.path(".tmp"), u.path("")) })
}

func (u *mountUser) reopenHeld() error {
	if err := u.put(u.path(".part"), fresh, u.lines("h", 2, 1)); err != nil {
		return err
	}
	if err := u.put(u.path(".part"), os.O_APPEND|os.O_WRONLY, u.lines("i", 1, 1), u.lines("j", 2, 1)); err != nil {
		return err
	}
	if err := u.timed(func() error { return os.Rename(u.path(".part"), u.path(".2.part")) }); err != nil {
		return err
	}
	return u.timed(func() error { return os.Rename(u.path(".2.part"), u.path("")) })
}

func (u *mountUser) unlinkOpen() error {
	f, err := u.open(u.path(""), fresh)
	if err != nil {
		return err
	}
	if err := u.write(f, u.lines("gone", 2, 0)); err != nil {
		return err
	}
	if err := u.timed(func() error { return os.Remove(u.path("")) }); err != nil {
		return err
	}
	return u.timed(f.Close)
}

func (u *mountUser) writeMuch() error {
	return u.put(u.path(""), fresh, u.lines("m", 2000, 1), u.lines("n", 1500, 1))
}

func (u *mountUser) inDirectory() error {
	if err := u.timed(func() error { return os.Mkdir(u.path(".d"), 0o700) }); err != nil {
		return err
	}
	path := filepath.Join(u.path(".d"), "f")
	if err := u.put(path, fresh, u.lines("d", 2, 1)); err != nil {
		return err
	}
	if err := u.timed(func() error { return os.Rename(u.path(".d"), u.path(".e")) }); err != nil {
		return err
	}
	if err := u.put(filepath.Join(u.path(".e"), "g"), fresh, u.lines("e", 1, 1)); err != nil {
		return err
	}
	// It is not empty while the RELEASE of a file in it is late.
	deadline := time.Now().Add(time.Minute)
	for {
		err := u.timed(func() error { return os.Remove(u.path(".e")) })
		if !errors.Is(err, unix.ENOTEMPTY) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func (u *mountUser) renameOpen() error {
	f, err := u.open(u.path(""), fresh)
	if err != nil {
		return err
	}
	if err := u.write(f, u.lines("r", 1, 1)); err != nil {
		return err
	}
	if err := u.timed(func() error { return os.Rename(u.path(""), u.path(".new")) }); err != nil {
		return err
	}
	if err := u.write(f, u.lines("t", 1, 1)); err != nil {
		return err
	}
	return u.timed(f.Close)
}

func (u *mountUser) cutOff() error {
	f, err := u.open(u.path(""), fresh)
	if err != nil {
		return err
	}
	kept := u.lines("k", 1, 1)
	if err := u.write(f, kept+u.lines("cut", 1, 0)); err != nil {
		return err
	}
	if err := u.timed(func() error { return f.Truncate(int64(len(kept))) }); err != nil {
		return err
	}
	if _, err := f.Seek(int64(len(kept)), io.SeekStart); err != nil {
		return err
	}
	if err := u.write(f, u.lines("l", 1, 1)); err != nil {
		return err
	}
	if err := u.timed(func() error { return os.Chmod(u.path(""), 0o640) }); err != nil {
		return err
	}
	return u.timed(f.Close)
}

func (u *mountUser) readBack() (err error) {
	f, err := u.open(u.path(".tmp"), os.O_CREATE|os.O_EXCL|os.O_RDWR)
	if err != nil {
		return err
	}
	text := strings.Repeat(u.lines("x", 3, 0), 1+u.r.IntN(1000))
	if err := u.write(f, text); err != nil {
		return err
	}
	if u.r.IntN(2) == 0 {
		if err := u.timed(func() error { return os.Remove(u.path(".tmp")) }); err != nil {
			return err
		}
	} else {
		defer func() {
			if err == nil {
				err = u.timed(func() error { return os.Remove(u.path(".tmp")) })
			}
		}()
	}
	got := make([]byte, len(text))
	if err := u.timed(func() error { _, err := f.ReadAt(got, 0); return err }); err != nil {
		return err
	}
	if string(got) != text {
		return errors.New("another content than was written")
	}
	return u.timed(f.Close)
}

func (u *mountUser) replace() error {
	final := filepath.Join(u.dir, u.name+".same.tmp")
	if err := u.put(u.path(".tmp"), fresh, u.lines("old", 2, 0)); err != nil {
		return err
	}
	if err := u.timed(func() error { return os.Rename(u.path(".tmp"), final) }); err != nil {
		return err
	}
	if err := u.put(u.path(".2.tmp"), fresh, u.lines("new", 1, 1)); err != nil {
		return err
	}
	if err := u.timed(func() error { return os.Rename(u.path(".2.tmp"), final) }); err != nil {
		return err
	}
	return u.timed(func() error { return os.Rename(final, u.path("")) })
}
