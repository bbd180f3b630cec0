package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// program is the spoolfs that the tests use, built by TestMain.
var program string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "spoolfs-demo-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "spoolfs")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "spoolfs/cmd/spoolfs").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build spoolfs: %v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Guarantees 1 and 2.
func TestRun(t *testing.T) {
	dir := tempDir(t)
	code, stdout, stderr := perform(t, t.Context(), nil, "-writers=4", "-files=41")
	if code != 0 || stderr != "" {
		t.Fatalf("got code %d and %q\n%s", code, stderr, stdout)
	}
	for _, want := range []string{
		`4 processes write 41 files at once`,
		`ok  41 files in [0-9.]+ m?s\.`,
		`ok  one file took [0-9.]+ m?s \(median\), [0-9.]+ m?s at worst`,
		`\$ ls -l /.*\n +total 0\n`,
		`queue +41 ready, 0 leased`,
		`\] 41 of 41 confirmed`,
		`ok  41 of 41 messages received from queue "demo", each exactly once`,
		`routing key  v03\.run\.00[0-3]\n`,
		`message id   [0-9a-f]{32}-1\n`,
		`body         {"pubTime": .*, "relPath": "run/00[0-3]/f000[0-4][0-9]\.grib2", "size": "1"}\n`,
		`exit code 0\n.*ok  nothing is left`,
	} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("the output has no %q", want)
		}
	}
	if strings.ContainsRune(stdout, '\x1b') {
		t.Error("the output has escape sequences and is no terminal")
	}
	if t.Failed() {
		t.Log(stdout)
	}
	wantNothingLeft(t, dir)
}

// Guarantee 2, when it is interrupted while much is going on.
func TestRun_Interrupted(t *testing.T) {
	for _, at := range []string{"3. ", "5. "} {
		t.Run(at, func(t *testing.T) {
			dir := tempDir(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			code, stdout, stderr := perform(t, ctx, func(text string) error {
				if strings.Contains(text, at) {
					cancel(errors.New("interrupted by the test"))
				}
				return nil
			}, "-writers=4", "-files=400")
			if code != 1 || !strings.Contains(stderr, "interrupted by the test") {
				t.Errorf("got code %d and %q\n%s", code, stderr, stdout)
			}
			wantNothingLeft(t, dir)
		})
	}
}

// Guarantee 2, when its reader goes away.
func TestRun_NobodyReads(t *testing.T) {
	dir := tempDir(t)
	code, _, stderr := perform(t, t.Context(), func(text string) error {
		if strings.Contains(text, "1. A RabbitMQ") {
			return io.ErrClosedPipe
		}
		return nil
	}, "-writers=4", "-files=40")
	if code != 1 || !strings.Contains(stderr, io.ErrClosedPipe.Error()) {
		t.Errorf("got code %d and %q", code, stderr)
	}
	wantNothingLeft(t, dir)
}

// A spoolfs that fails is heard.
func TestRun_SpoolfsFails(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "spoolfs")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho the reason >&2\nexit 74\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := tempDir(t)
	code, _, stderr := perform(t, t.Context(), nil, "-writers=2", "-files=2", "-spoolfs="+broken)
	if code != 1 || !strings.Contains(stderr, "exit status 74") || !strings.Contains(stderr, "the reason") {
		t.Errorf("got code %d and %q", code, stderr)
	}
	wantNothingLeft(t, dir)
}

func TestRun_WrongUse(t *testing.T) {
	for _, tt := range []struct{ arg, want string }{
		{"-writers=1", "at least two"},
		{"-files=3", "at least one for each of 32 writers"},
		{"-spoolfs=/nonexistent/spoolfs", "make build"},
		{"-nonsense", "-nonsense"},
		{"something", `"something"`},
	} {
		code, stdout, stderr := perform(t, t.Context(), nil, tt.arg)
		if code != 1 || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: got code %d, %q and %q", tt.arg, code, stdout, stderr)
		}
	}
	if code, _, stderr := perform(t, t.Context(), nil, "-help"); code != 0 || !strings.Contains(stderr, "-writers") {
		t.Errorf("-help: got code %d and %q", code, stderr)
	}
}

// perform runs the demo. It calls seen with each piece of its output; an error
// of that is one of the write.
func perform(tb testing.TB, ctx context.Context, seen func(string) error, args ...string) (code int, stdout, stderr string) {
	tb.Helper()
	var out, errs bytes.Buffer
	w := writerFunc(func(p []byte) (int, error) {
		if seen != nil {
			if err := seen(string(p)); err != nil {
				return 0, err
			}
		}
		return out.Write(p)
	})
	code = run(ctx, append([]string{"-spoolfs=" + program}, args...), w, &errs)
	return code, out.String(), errs.String()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// tempDir makes a directory that the demo puts its directories in. Other users
// can enter it: RabbitMQ runs as one.
func tempDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "spoolfs-demo-test-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.Remove(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	tb.Setenv("TMPDIR", dir)
	return dir
}

// wantNothingLeft looks for what mentions the directory. It cannot be removed
// while something is in it.
func wantNothingLeft(tb testing.TB, dir string) {
	tb.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		tb.Fatal(err)
	}
	if strings.Contains(string(mounts), dir) {
		tb.Error("a mount is left")
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range processes {
		if p == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(p, "cmdline")) // or it has just ended
		environ, _ := os.ReadFile(filepath.Join(p, "environ"))
		if bytes.Contains(command, []byte(dir)) || bytes.Contains(environ, []byte(dir)) {
			tb.Errorf("process %s is left: %q", filepath.Base(p), command)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		tb.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}
