package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// writerEnv makes the test binary a writer.
const writerEnv = "SPOOLFS_TEST_WRITER"

// writerSpec says what a writer does.
type writerSpec struct {
	Dir    string
	Writer int
	Files  int  // at least
	Retry  bool // a file that fails is written again, as another attempt
	Temp   bool // a file has a temporary name first
}

// writerReport is what a writer did.
type writerReport struct {
	Accepted []int // the attempt that succeeded, for each file
	Failed   int   // attempts that failed
	Worst    time.Duration
	Median   time.Duration
}

// attemptPath is the path in the message of an attempt: it tells it from all
// others.
func attemptPath(writer, file, attempt int) string {
	return fmt.Sprintf("w%03d/%05d/%d", writer, file, attempt)
}

// runWriter writes files one after the other: at least spec.Files, and until its
// standard input ends.
func runWriter(text string) int {
	var spec writerSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	told := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(told)
	}()
	var report writerReport
	var times []time.Duration
	for n := 0; ; n++ {
		select {
		case <-told:
			if n >= spec.Files {
				return printReport(report, times)
			}
		default:
		}
		attempt, took, err := writeFile(spec, n)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		report.Accepted = append(report.Accepted, attempt)
		report.Failed += attempt
		times = append(times, took)
	}
}

func printReport(report writerReport, times []time.Duration) int {
	slices.Sort(times)
	report.Median, report.Worst = times[len(times)/2], times[len(times)-1]
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return 1
	}
	return 0
}

// writeFile writes a file until close has returned 0, and returns which attempt
// that was and how long it took.
func writeFile(spec writerSpec, n int) (attempt int, took time.Duration, err error) {
	for deadline := time.Now().Add(time.Minute); ; attempt++ {
		start := time.Now()
		err = writeOnce(spec, n, attempt)
		if err == nil {
			return attempt, time.Since(start), nil
		}
		if !spec.Retry || time.Now().After(deadline) {
			return attempt, 0, err
		}
		time.Sleep(5 * time.Millisecond) // the daemon is away
	}
}

func writeOnce(spec writerSpec, n, attempt int) error {
	name := filepath.Join(spec.Dir, fmt.Sprintf("post_retry.node1.%d.%d.%d", os.Getpid(), n, attempt))
	final := name
	if spec.Temp {
		name += ".tmp"
	}
	// O_EXCL would hide nothing: it makes sure that no other file has the name.
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, `{"pubTime": "20261130T070000.000", "baseUrl": "http://node1", "relPath": "%s"}`+"\n", attemptPath(spec.Writer, n, attempt))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil && spec.Temp {
		err = os.Rename(name, final)
	}
	return err
}

// writers are processes that write into a mount.
type writers struct {
	t       testing.TB
	stop    []io.Closer
	wait    sync.WaitGroup
	reports []writerReport
}

// startWriters starts count processes.
func startWriters(t testing.TB, dir string, count, files int, retry bool) *writers {
	t.Helper()
	return startWritersOf(t, count, writerSpec{Dir: dir, Files: files, Retry: retry})
}

// startWritersOf starts count processes that do what spec says.
func startWritersOf(t testing.TB, count int, spec writerSpec) *writers {
	t.Helper()
	w := &writers{t: t, reports: make([]writerReport, count)}
	for i := range count {
		spec.Writer = i
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerEnv+"="+string(text))
		stderr := &output{}
		cmd.Stderr = stderr
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
		w.stop = append(w.stop, in)
		w.wait.Go(func() {
			if err := json.NewDecoder(bufio.NewReader(out)).Decode(&w.reports[i]); err != nil {
				t.Errorf("writer %d: %v: %s", i, err, stderr)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("writer %d: %v: %s", i, err, stderr)
			}
		})
	}
	return w
}

// finish lets the writers end and returns what they did.
func (w *writers) finish() []writerReport {
	w.t.Helper()
	for _, c := range w.stop {
		c.Close()
	}
	w.wait.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
	return w.reports
}

// median is the median of the writers' medians, and the longest of all writes.
func median(reports []writerReport) (median, worst time.Duration) {
	var medians []time.Duration
	for _, r := range reports {
		medians = append(medians, r.Median)
		worst = max(worst, r.Worst)
	}
	slices.Sort(medians)
	return medians[len(medians)/2], worst
}
