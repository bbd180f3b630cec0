package integration

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// busyWriter is a process that uses files in each way there is, one after the
// other, and takes note of every system call that fails, and of what is safe.
type busyWriter struct {
	dir, name string
	journal   *os.File // what it has begun, and how that has ended, by number
	errors    int
	longest   time.Duration
	where     string // the call that took longest
}

// runBusy writes until its standard input ends. The arguments are the mount, the
// name of the writer, its journal, and "storm" for one that gets 1,000 signals a
// second.
func runBusy(args []string) int {
	runtime.LockOSThread() // the storm must come to the thread that waits
	journal, err := os.OpenFile(args[2], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	told := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(told)
	}()
	if len(args) > 3 && args[3] == "storm" {
		go storm(unix.Gettid(), told)
	}
	w := &busyWriter{dir: args[0], name: args[1], journal: journal}
	for n := 0; ; n++ {
		select {
		case <-told:
			json.NewEncoder(os.Stdout).Encode(busyReport{n, w.errors, w.longest, w.where})
			return 0
		default:
			w.file(n)
		}
	}
}

// busyReport is what a writer says at its end.
type busyReport struct {
	Files, Errors int
	Longest       time.Duration
	Where         string
}

// storm sends a signal to a thread every millisecond, as the Go runtime does it to
// preempt goroutines, only more often.
func storm(thread int, told <-chan struct{}) {
	every := time.NewTicker(time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
		case <-told:
			return
		}
	}
}

// call makes a system call, and tells when it fails or takes long. Package os is
// not used, which would call again after EINTR.
func (w *busyWriter) call(what string, call func() error) {
	start := time.Now()
	err := call()
	if took := time.Since(start); took > w.longest {
		w.longest, w.where = took, what
	}
	if err != nil {
		w.errors++
		fmt.Fprintf(os.Stderr, "%s %s: %v\n", w.name, what, err)
	}
}

// file uses a file in one of the ways.
func (w *busyWriter) file(n int) {
	lines := make([]string, 3)
	for i := range lines {
		lines[i] = record(fmt.Sprintf("%s/%d/%d", w.name, n, i)) + "\n"
	}
	ways := []func(n int, lines []string){w.plain, w.held, w.renamed, w.appended, w.unlinked, w.duplicated}
	way := n % len(ways)
	unlinked := way == 4
	fmt.Fprintf(w.journal, "tried %d\n", n)
	before := w.errors
	ways[way](n, lines)
	switch {
	case w.errors > before:
	case unlinked:
		fmt.Fprintf(w.journal, "taken-back %d\n", n)
	default:
		fmt.Fprintf(w.journal, "safe %d\n", n)
	}
}

func (w *busyWriter) path(name string, n int) string {
	return filepath.Join(w.dir, fmt.Sprintf("%s.%s.%d", name, w.name, n))
}

func (w *busyWriter) open(path string, flags int) (fd int) {
	w.call("open "+path, func() (err error) {
		fd, err = unix.Open(path, flags|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		return err
	})
	return fd
}

func (w *busyWriter) write(fd int, text string) {
	w.call("write", func() error {
		n, err := unix.Write(fd, []byte(text))
		if err == nil && n < len(text) {
			return errors.New("short")
		}
		return err
	})
}

func (w *busyWriter) close(fd int) { w.call("close", func() error { return unix.Close(fd) }) }

// plain: created, several writes, kept open for a moment, closed.
func (w *busyWriter) plain(n int, lines []string) {
	fd := w.open(w.path("plain", n), unix.O_CREAT|unix.O_EXCL)
	for _, line := range lines {
		w.write(fd, line)
	}
	moment := time.NewTimer(time.Duration(n%5) * time.Millisecond)
	<-moment.C
	w.close(fd)
}

// held: written under a temporary name, appended to, renamed.
func (w *busyWriter) held(n int, lines []string) {
	path := w.path("held", n)
	for i, line := range lines {
		flags := unix.O_APPEND
		if i == 0 {
			flags |= unix.O_CREAT | unix.O_EXCL
		}
		fd := w.open(path+".tmp", flags)
		w.write(fd, line)
		w.close(fd)
	}
	w.call("rename held", func() error { return unix.Rename(path+".tmp", path) })
}

// renamed: gets another name while it is open.
func (w *busyWriter) renamed(n int, lines []string) {
	path := w.path("renamed", n)
	fd := w.open(path, unix.O_CREAT|unix.O_EXCL)
	w.write(fd, lines[0])
	w.call("rename open", func() error { return unix.Rename(path, path+"a") })
	w.write(fd, lines[1]+lines[2])
	w.close(fd)
}

// appended: a name that others append to, too.
func (w *busyWriter) appended(_ int, lines []string) {
	for _, line := range lines {
		fd := w.open(filepath.Join(w.dir, "everybody"), unix.O_CREAT|unix.O_APPEND)
		w.write(fd, line)
		w.close(fd)
	}
}

// unlinked: taken back before it is closed.
func (w *busyWriter) unlinked(n int, lines []string) {
	path := w.path("unlinked", n)
	fd := w.open(path, unix.O_CREAT|unix.O_EXCL)
	w.write(fd, strings.Join(lines, ""))
	w.call("unlink", func() error { return unix.Unlink(path) })
	w.close(fd)
}

// duplicated: flushed by the close of a duplicate and by fsync, and written to
// after that.
func (w *busyWriter) duplicated(n int, lines []string) {
	fd := w.open(w.path("duplicated", n), unix.O_CREAT|unix.O_EXCL)
	w.write(fd, lines[0])
	w.call("dup", func() error {
		second, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			err = unix.Close(second)
		}
		return err
	})
	w.write(fd, lines[1])
	w.call("fsync", func() error { return unix.Fsync(fd) })
	w.write(fd, lines[2])
	w.close(fd)
}

// busyWriters are the load of a test.
type busyWriters struct {
	t        testing.TB
	dir      string
	journals string
	wait     sync.WaitGroup
	quit     chan struct{}

	mu       sync.Mutex
	running  map[string]io.Closer
	reports  []busyReport
	failures []string
	killed   int
}

// startBusy starts writers that live to the end, half of them in a storm of
// signals, and as many again that are killed at random.
func startBusy(t testing.TB, dir string, count int) *busyWriters {
	t.Helper()
	b := &busyWriters{t: t, dir: dir, journals: t.TempDir(), quit: make(chan struct{}), running: map[string]io.Closer{}}
	for i := range count {
		b.wait.Go(func() { b.live(fmt.Sprintf("w%d", i), i%2 == 1, 0) })
	}
	for i := range 2 {
		b.wait.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-b.quit:
					return
				default:
					b.live(fmt.Sprintf("k%d-%d", i, n), i == 1, time.Duration(20+(n*37)%200)*time.Millisecond)
				}
			}
		})
	}
	return b
}

// live runs a writer to the end, or kills it after a time.
func (b *busyWriters) live(name string, storm bool, kill time.Duration) {
	args := []string{b.dir, name, filepath.Join(b.journals, name)}
	if storm {
		args = append(args, "storm")
	}
	cmd := self("busy", args...)
	stderr := &output{}
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.t.Error(err)
		return
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		b.t.Error(err)
		return
	}
	if kill > 0 {
		moment := time.NewTimer(kill)
		select {
		case <-moment.C:
			cmd.Process.Kill()
		case <-b.quit:
		}
		in.Close()
		cmd.Wait()
		b.end(stderr.String(), nil)
		return
	}
	go func() {
		<-b.quit
		in.Close()
	}()
	var report busyReport
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&report); err != nil {
		b.t.Errorf("writer %s: %v: %s", name, err, stderr)
	}
	cmd.Wait()
	b.end(stderr.String(), &report)
}

func (b *busyWriters) end(failures string, report *busyReport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = append(b.failures, lines(failures)...)
	if report == nil {
		b.killed++
	} else {
		b.reports = append(b.reports, *report)
	}
}

// finish ends the load, checks that nobody has seen an error, and returns how
// many files there were.
func (b *busyWriters) finish() (files int) {
	b.t.Helper()
	close(b.quit)
	b.wait.Wait()
	longest, where := time.Duration(0), ""
	for _, r := range b.reports {
		files += r.Files
		if r.Longest > longest {
			longest, where = r.Longest, r.Where
		}
	}
	b.t.Logf("%d files of %d writers, %d writers were killed; the longest call took %s: %s",
		files, len(b.reports), b.killed, longest.Round(time.Millisecond), where)
	for i, failure := range b.failures {
		b.t.Errorf("a writer got an error: %s", failure)
		if i > 20 {
			b.t.Fatal("and more")
		}
	}
	return files
}

// check compares what is stored with what the writers promise: each line of a file
// that was closed is there once, of a file whose writer was killed at most once,
// and of one that was taken back never.
func (b *busyWriters) check(got stored) {
	b.t.Helper()
	count, ids := map[string]int{}, map[string]bool{}
	for i, text := range got.pending {
		count[text]++
		if ids[got.ids[i]] {
			b.t.Errorf("the message id %s is there twice", got.ids[i])
		}
		ids[got.ids[i]] = true
	}
	safe, known := 0, map[string]bool{}
	journals, err := filepath.Glob(filepath.Join(b.journals, "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, path := range journals {
		text, err := os.ReadFile(path)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, entry := range lines(string(text)) {
			word, n, _ := strings.Cut(entry, " ")
			for i := range 3 {
				line := record(fmt.Sprintf("%s/%s/%d", filepath.Base(path), n, i))
				known[line] = word != "taken-back"
				if word == "safe" {
					safe++
					if count[line] == 0 {
						b.t.Errorf("lost: %s", line)
					}
				}
			}
		}
	}
	for line, n := range count {
		if n > 1 {
			b.t.Errorf("%d times: %s", n, line)
		}
		if !known[line] {
			b.t.Errorf("nobody has promised: %s", line)
		}
	}
	for _, text := range append(got.dead, got.partial...) {
		if !strings.Contains(text, "d/k") { // of a writer that was killed
			b.t.Errorf("set aside: %.200s", text)
		}
	}
	b.t.Logf("%d messages, %d of them promised; %d set aside", len(got.pending), safe, len(got.dead)+len(got.partial))
}
