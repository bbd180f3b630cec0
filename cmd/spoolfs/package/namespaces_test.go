package packaging_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runScript runs a script of testdata in a mount namespace of its own, and one of
// processes, so that nothing is left, and fails unless it ends with "all is well".
// It has the environment, and some more.
func runScript(t *testing.T, name string, more []string, args ...string) {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", append([]string{"--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--",
		"bash", "-euo", "pipefail", script}, args...)...)
	cmd.Env = append(os.Environ(), more...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.HasSuffix(strings.TrimSpace(string(out)), "all is well") {
		t.Fatalf("it has ended early:\n%s", out)
	}
	t.Logf("%s", out)
}
