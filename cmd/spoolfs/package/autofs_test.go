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

// TestAutofs: who writes into a spool of an autofs map has it mounted, by the helper;
// it goes when nobody uses it, and comes back with what was in it.
func TestAutofs(t *testing.T) {
	if _, err := os.Stat("/dev/autofs"); err != nil {
		t.Skip("the kernel has no autofs")
	}
	script, err := filepath.Abs("testdata/autofs.sh")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--",
		"bash", "-euo", "pipefail", script, t.TempDir(), one(t, "first/out/package/bin/spoolfs"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "all is well\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
