package integration

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// longName is a name of 255 bytes, as long as a name can be.
func longName(writer string, n int) string {
	name := fmt.Sprintf("%s.%06d.", writer, n)
	return name + strings.Repeat("n", 255-len(name))
}

// runHold keeps many files open with long names, and takes a step with all of them
// for each line of standard input: the first half of a line, the rest and another
// line, the close. It says so after each step.
func runHold(args []string) int {
	dir, writer := args[0], args[1]
	count, err := strconv.Atoi(args[2])
	if err != nil {
		return 1
	}
	fds := make([]int, count)
	write := func(n int, text string) error {
		m, err := unix.Write(fds[n], []byte(text))
		if err == nil && m < len(text) {
			err = io.ErrShortWrite
		}
		return err
	}
	steps := []func(n int) error{
		func(n int) (err error) {
			if fds[n], err = unix.Open(dir+"/"+longName(writer, n), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o644); err != nil {
				return err
			}
			return write(n, numbered(writer, 2*n)[:20])
		},
		func(n int) error { return write(n, numbered(writer, 2*n)[20:]+"\n"+numbered(writer, 2*n+1)+"\n") },
		func(n int) error { return unix.Close(fds[n]) },
	}
	next := bufio.NewScanner(os.Stdin)
	for i, step := range steps {
		if !next.Scan() {
			return 1
		}
		for n := range count {
			if err := step(n); err != nil {
				fmt.Fprintf(os.Stderr, "step %d of file %d: %v\n", i, n, err)
				return 1
			}
		}
		fmt.Println(i)
	}
	return 0
}

// holders are processes that keep many files open.
type holders struct {
	t     testing.TB
	in    []io.Writer
	out   []*bufio.Reader
	wait  []func() error
	names []string
}

// hold starts processes that are to keep so many files open altogether: few
// systems let one have 100,000.
func (s *spool) hold(count int) *holders {
	s.t.Helper()
	const perProcess = 10_000
	h := &holders{t: s.t}
	for i := 0; count > 0; i++ {
		name := fmt.Sprint("holder", i)
		cmd := self("hold", s.dir, name, strconv.Itoa(min(count, perProcess)))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			s.t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			s.t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { cmd.Process.Kill() })
		h.in, h.out, h.wait, h.names = append(h.in, in), append(h.out, bufio.NewReader(out)), append(h.wait, cmd.Wait), append(h.names, name)
		count -= perProcess
	}
	return h
}

// begin has all take the next step; the function that it returns waits for that.
func (h *holders) begin() (finish func()) {
	h.t.Helper()
	for _, in := range h.in {
		if _, err := io.WriteString(in, "\n"); err != nil {
			h.t.Fatal(err)
		}
	}
	return func() {
		h.t.Helper()
		for i, out := range h.out {
			if line, err := out.ReadString('\n'); err != nil {
				h.t.Fatalf("%s said %q, %v", h.names[i], line, err)
			}
		}
	}
}

// TestKeeper_ManyOpen proves G10 for many open files with names of 255 bytes: while
// each is half written, while it is written further and while it is closed, workers
// are killed. All is published, once.
func TestKeeper_ManyOpen(t *testing.T) {
	count := times(3000, 100_000)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	// A busy machine takes its time for 100,000.
	s, w := startKept(t, "--worker-timeout", "10m")
	h := s.hold(count)
	h.begin()()
	if got := s.status().FS.OpenFiles; got != count {
		t.Errorf("%d files are open, want %d", got, count)
	}
	killWorkers(t, w, 4, random)
	for range 2 {
		finish := h.begin()
		killWorkers(t, w, 4, random)
		finish()
	}
	for i, wait := range h.wait {
		if err := wait(); err != nil {
			t.Errorf("%s: %v", h.names[i], err)
		}
	}
	t.Logf("%d open files: %s; the worker has %s", count, s.gaps(), s.resident())
	s.untilClosed()
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.stderr)
	}
	checkHeld(t, s.stored(), h.names, count)
}

// checkHeld checks that what holders have written is there once, under its names.
func checkHeld(t *testing.T, got stored, writers []string, count int) {
	t.Helper()
	if len(got.dead)+len(got.partial) > 0 {
		t.Errorf("%d dead, %d partial", len(got.dead), len(got.partial))
	}
	labels := map[string]int{}
	for _, label := range got.labels {
		labels[label]++
	}
	texts := map[string]int{}
	for _, text := range got.pending {
		texts[text]++
	}
	const perProcess = 10_000
	wrong := 0
	for n := range count {
		w, n := writers[n/perProcess], n%perProcess
		if labels[longName(w, n)] != 2 || texts[numbered(w, 2*n)] != 1 || texts[numbered(w, 2*n+1)] != 1 {
			wrong++
		}
	}
	if wrong > 0 || len(got.pending) != 2*count {
		t.Errorf("%d of %d files are wrong, %d messages", wrong, count, len(got.pending))
	}
}
