package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// counts are the counters of the metrics whose name begins so, by what is behind
// that.
func (s *spool) counts(prefix string) map[string]float64 {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, ".status", "metrics"))
	if err != nil {
		s.t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, line := range lines(string(text)) {
		name, value, _ := strings.Cut(line, " ")
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if counts[rest], err = strconv.ParseFloat(value, 64); err != nil {
				s.t.Fatalf("%v in %q", err, line)
			}
		}
	}
	return counts
}

// systemCalls are how often the worker has read and written, by any call that does.
func (s *spool) systemCalls() (n float64) {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.daemonPID()))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range lines(string(text)) {
		key, value, _ := strings.Cut(line, ": ")
		if key == "syscr" || key == "syscw" {
			count, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			n += count
		}
	}
	return n
}

// TestGuard_RequestsPerFile counts what a file costs that a process creates,
// writes and closes: five requests, one sync, and not many more system calls than
// to read and answer them and to write the log.
func TestGuard_RequestsPerFile(t *testing.T) {
	s := newSpool(t, plainBinary, deadBroker, "--exchange", "x")
	s.start()
	const ops, syncs = "spoolfs_fuse_ops_duration_seconds_count", "spoolfs_store_sync_duration_seconds_count"
	s.untilIngested(0)
	opsBefore, syncsBefore, callsBefore := s.counts(ops), s.counts(syncs)[""], s.systemCalls()
	files := float64(len(startWriters(t, s.dir, 1, 200, false).finish()[0].Accepted))
	calls := s.systemCalls() - callsBefore
	// Looked at but once, since looks at the status are requests, too.
	opsAfter, syncsAfter, requests := s.counts(ops), s.counts(syncs)[""], 0.0
	for op, n := range opsAfter {
		requests += n - opsBefore[op]
	}
	t.Logf("%.0f files: %.2f requests, %.2f system calls, %.2f syncs a file", files, requests/files, calls/files, (syncsAfter-syncsBefore)/files)
	for _, op := range []string{`{op="create"}`, `{op="write"}`} {
		if got := opsAfter[op] - opsBefore[op]; got != files {
			t.Errorf("%.0f requests %s for %.0f files", got, op, files)
		}
	}
	if requests > 5.5*files {
		t.Errorf("%.2f requests a file, want 5: %v before, %v after", requests/files, opsBefore, opsAfter)
	}
	if n := syncsAfter - syncsBefore; n < files || n > 1.1*files {
		t.Errorf("%.0f syncs for %.0f files, want one a file", n, files)
	}
	if calls > 28*files {
		t.Errorf("%.1f system calls a file, want at most 28", calls/files)
	}
}
