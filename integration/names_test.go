package integration

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMount_OddNames proves F15 of the pains: a name may have every byte but "/"
// and NUL, and 255 of them; the store keeps it as it is.
func TestMount_OddNames(t *testing.T) {
	s := startSpool(t, deadBroker, "--exchange", "x")
	h := s.newHand()
	var names []string
	for i := 1; i < 256; i++ {
		if i == '/' {
			continue
		}
		odd := string([]byte{byte(i)})
		names = append(names, "a"+odd+"b", odd+"b")
		if odd != "." {
			names = append(names, odd)
		}
	}
	long := strings.Repeat("n", 255)
	names = append(names, long, strings.Repeat("ü", 127), "...", "..a", " ", "-rf", "+256", "+0a", "a.tmp.b")
	var labels []string
	for _, name := range names {
		h.put(name, record("a")+"\n")
		if strings.HasPrefix(name, ".") {
			h.do(order{Call: "rename", Path: name, To: "x" + name})
			name = "x" + name
		}
		labels = append(labels, name)
	}
	tooLong := long + "n"
	h.refuses(order{Call: "open", Path: tooLong, Flags: unix.O_CREAT | unix.O_WRONLY}, unix.ENAMETOOLONG)
	h.refuses(order{Call: "stat", Path: tooLong}, unix.ENAMETOOLONG)
	h.refuses(order{Call: "mkdir", Path: tooLong}, unix.ENAMETOOLONG)
	fd := h.create("f")
	h.refuses(order{Call: "rename", Path: "f", To: tooLong}, unix.ENAMETOOLONG)
	h.close(fd)
	s.untilIngested(uint64(len(labels)))
	s.kill()
	got := s.stored()
	slices.Sort(got.labels)
	slices.Sort(labels)
	checkTexts(t, "the files are", got.labels, labels)
}

// TestMount_ManyOpen: many files are open at once; they are listed and counted,
// and all are published.
func TestMount_ManyOpen(t *testing.T) {
	// More processes than one, since few may have 100,000 descriptors.
	const perProcess = 10_000
	count := times(2000, 100_000)
	s := newSpool(t, plainBinary, deadBroker, "--exchange", "x")
	s.start()
	var stop []io.Closer
	var wait []func() error
	for from := 0; from < count; from += perProcess {
		cmd := self("many", s.dir, strconv.Itoa(from), strconv.Itoa(min(from+perProcess, count)))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stop, wait = append(stop, in), append(wait, cmd.Wait)
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Errorf("the writer said %q, %v", line, err)
		}
	}
	if got := s.status().FS.OpenFiles; got != count {
		t.Errorf("%d files are open, want %d", got, count)
	}
	if got := len(s.names()); got != count+1 {
		t.Errorf("the mount lists %d names, want %d", got, count+1)
	}
	t.Logf("with %d open files the daemon has %s", count, s.resident())
	for _, in := range stop {
		in.Close()
	}
	for _, wait := range wait {
		if err := wait(); err != nil {
			t.Fatal(err)
		}
	}
	s.untilIngested(uint64(count))
	if got := s.status(); got.Queue.Ready != uint64(count) || got.Queue.Dead != 0 {
		t.Errorf("the status is %+v", got)
	}
	if names := s.names(); len(names) != 1 {
		t.Errorf("the mount lists %d names", len(names))
	}
}

// resident is the memory of the daemon.
func (s *spool) resident() string {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.daemonPID()))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// runMany opens many files, writes to each, and closes them when standard input
// ends.
func runMany(args []string) int {
	from, err := strconv.Atoi(args[1])
	if err != nil {
		return 1
	}
	to, err := strconv.Atoi(args[2])
	if err != nil {
		return 1
	}
	var fds []int
	for i := from; i < to; i++ {
		fd, err := unix.Open(fmt.Sprintf("%s/f%d", args[0], i), unix.O_CREAT|unix.O_WRONLY, 0o644)
		if err == nil {
			_, err = unix.Write(fd, []byte(numbered("many", i)+"\n"))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "file %d: %v\n", i, err)
			return 1
		}
		fds = append(fds, fd)
	}
	fmt.Println("open")
	os.Stdin.Read(make([]byte, 1))
	for _, fd := range fds {
		if err := unix.Close(fd); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}
