package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// spool is a running program with its mount.
type spool struct {
	t      testing.TB
	binary string
	dir    string // the mountpoint
	store  string
	args   []string
	cmd    *exec.Cmd
	stdout *output
	stderr *output
	log    *os.File  // instead of stderr, if not nil
	tee    io.Writer // gets what stderr gets, if not nil
	env    []string
	worker int        // of this start, once somebody has asked
	files  []*os.File // descriptors from 3 on
	exited chan struct{}

	checked int // how much of what was published has been looked at
}

// output collects what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// startSpool mounts a spool for the length of the test and waits until it is
// ready.
func startSpool(t testing.TB, brokerURL string, args ...string) *spool {
	t.Helper()
	s := newSpool(t, raceBinary, brokerURL, args...)
	s.start()
	return s
}

// newSpool prepares a spool and does not start it.
func newSpool(t testing.TB, binary, brokerURL string, args ...string) *spool {
	t.Helper()
	base := t.TempDir()
	s := &spool{t: t, binary: binary, dir: filepath.Join(base, "mnt"), store: filepath.Join(base, "store")}
	// Users other than root must get through to the mount.
	for dir := base; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cleanup)
	s.args = append([]string{"--store", s.store, "--broker", brokerURL}, args...)
	return s
}

// start starts the program again with the same store and mountpoint.
func (s *spool) start() {
	s.t.Helper()
	s.launch()
	s.until("ready", func() bool { return strings.Contains(s.stderr.String(), "msg=ready") })
}

func (s *spool) launch() {
	s.t.Helper()
	s.stdout, s.stderr, s.worker = &output{}, &output{}, 0
	s.cmd = exec.Command(s.binary, append(append([]string{"mount"}, s.args...), s.dir)...)
	s.cmd.Stdout, s.cmd.Stderr = s.stdout, s.stderr
	if s.tee != nil {
		s.cmd.Stderr = io.MultiWriter(s.stderr, s.tee)
	}
	if s.log != nil {
		s.cmd.Stderr = s.log
	}
	s.cmd.ExtraFiles = s.files
	// The race detector would wait a second at exit.
	s.cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), s.env...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for _, f := range s.files {
		f.Close() // a copy of ours would keep alive what the program ends
	}
	s.files = nil
	exited := make(chan struct{})
	s.exited = exited
	go func(cmd *exec.Cmd) {
		defer close(exited)
		cmd.Wait()
	}(s.cmd)
}

// until waits for a condition. It fails when the program ends before.
func (s *spool) until(what string, cond func() bool) {
	s.t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for !cond() {
		select {
		case <-ticker.C:
		case <-s.exited:
			if cond() {
				return
			}
			s.t.Fatalf("the program ended before it was %s:\n%s", what, s.stderr)
		case <-deadline:
			s.t.Fatalf("the program did not get %s within a minute:\n%s\n%s", what, s.stderr, s.summary())
		}
	}
}

// kill ends the program as a crash does.
func (s *spool) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	<-s.exited
}

// stop ends the program as an operator does and returns its exit code.
func (s *spool) stop() int {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	return s.wait()
}

func (s *spool) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Fatal(err)
	}
}

func (s *spool) wait() int {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(time.Minute):
		s.t.Fatalf("the program did not stop within a minute:\n%s", s.stderr)
	}
	return s.cmd.ProcessState.ExitCode()
}

func (s *spool) cleanup() {
	if s.exited != nil {
		s.cmd.Process.Kill()
		<-s.exited
		if strings.Contains(s.stderr.String(), "DATA RACE") || s.t.Failed() {
			s.t.Errorf("the program said:\n%s", s.stderr)
		}
	}
	for unix.Unmount(s.dir, unix.MNT_DETACH) == nil {
		continue
	}
}

// statusJSON is status.json as a consumer of it reads it.
type statusJSON struct {
	Version string
	Queue   struct {
		Ready, Leased, Delayed, Dead, Partial, Staged, Bytes uint64
		OldestReadySeconds                                   float64 `json:"oldest_ready_seconds"`
		Late                                                 uint64  `json:"late_total"`
	}
	Publisher struct {
		State          string
		InFlight       int    `json:"in_flight"`
		ConfirmedTotal uint64 `json:"confirmed_total"`
		LastError      string `json:"last_error"`
	}
	FS struct {
		OpenFiles             int    `json:"open_files"`
		HeldFiles             int    `json:"held_files"`
		IngestedFilesTotal    uint64 `json:"ingested_files_total"`
		IngestedMessagesTotal uint64 `json:"ingested_messages_total"`
		IngestedPartialTotal  uint64 `json:"ingested_partial_total"`
		IngestErrorsTotal     uint64 `json:"ingest_errors_total"`
		PanicsTotal           uint64 `json:"panics_total"`
		UnknownEndings        uint64 `json:"unknown_endings_total"`
	}
	Keeper struct {
		PID             int
		WorkerPID       int    `json:"worker_pid"`
		Deaths          int    `json:"deaths_total"`
		Refused         int    `json:"refused_total"`
		Upgrades        int    `json:"upgrades_total"`
		UpgradeFailures int    `json:"upgrade_failures_total"`
		UpgradeError    string `json:"upgrade_error"`
	}
	Janitor struct {
		FilesTotal   uint64 `json:"files_total"`
		WaitingFiles int    `json:"waiting_files"`
	}
}

func (s *spool) status() statusJSON {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, ".status", "status.json"))
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.stderr)
	}
	var st statusJSON
	if err := json.Unmarshal(text, &st); err != nil {
		s.t.Fatalf("%v in\n%s", err, text)
	}
	return st
}

// daemonPID is the process that does the work: with a keeper its worker.
func (s *spool) daemonPID() int {
	s.t.Helper()
	if s.worker == 0 {
		s.worker = s.status().Keeper.WorkerPID
	}
	return s.worker
}

func (s *spool) summary() string {
	text, err := os.ReadFile(filepath.Join(s.dir, ".status", "summary"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// untilIngested waits until all RELEASEs have come: close(2) does not.
func (s *spool) untilIngested(messages uint64) {
	s.t.Helper()
	s.until("done with ingesting", func() bool {
		st := s.status()
		return st.FS.OpenFiles == 0 && st.Queue.Staged == 0 && st.FS.IngestedMessagesTotal >= messages
	})
}

// untilClosed waits until no file is open. Some may be held.
func (s *spool) untilClosed() {
	s.t.Helper()
	s.until("without an open file", func() bool { return s.status().FS.OpenFiles == 0 })
}

// untilSent waits until nothing is left to publish.
func (s *spool) untilSent() {
	s.t.Helper()
	s.until("done with sending", func() bool {
		q := s.status().Queue
		return q.Ready+q.Leased+q.Delayed+q.Staged == 0
	})
}

// sh runs a shell script with the mount as $M.
func (s *spool) sh(script string) {
	s.t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), "M="+s.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s\n%s", script, err, out, s.stderr)
	}
}

// names lists the mount.
func (s *spool) names() []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// lines splits text into lines without their ends.
func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}
