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

// TestInstall: a package is installed on this system, below an overlay; a spool is
// mounted of a line of fstab, and used; a newer package is installed while eight
// writers write, of which none may see an error; a removal is refused while a spool
// cannot be drained, and else drains, and leaves configuration, store and messages,
// as does a purge; and the messages can be published then, each once.
func TestInstall(t *testing.T) {
	for _, kind := range []string{"deb", "rpm"} {
		t.Run(kind, func(t *testing.T) { runInstall(t, kind) })
	}
}

func runInstall(t *testing.T, kind string) {
	base := t.TempDir()
	script, err := filepath.Abs("testdata/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// A mount namespace of its own, and one of processes, so that nothing is left.
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--",
		"bash", "-euo", "pipefail", script, kind, base)
	pattern := map[string]string{"deb": "spoolfs_*.deb", "rpm": "spoolfs-*.rpm"}[kind]
	cmd.Env = append(os.Environ(), "FIRST="+one(t, "first/out/"+pattern), "LATER="+one(t, "later/"+pattern),
		"PROGRAM="+one(t, "first/out/package/bin/spoolfs"), "LATER_VERSION="+laterVersion)
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
