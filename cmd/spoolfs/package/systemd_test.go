package packaging_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSystemd runs a systemd of its own, which starts the service, restarts it, kills
// all of it, has it upgraded and reloaded while somebody writes, who may see no error,
// stops and removes it. It needs a machine that lets it start one, and is a part of
// "make chaos".
func TestSystemd(t *testing.T) {
	if os.Getenv("SPOOLFS_CHAOS") == "" {
		t.Skip(`it is for machines that let a systemd start: see "make chaos"`)
	}
	base := t.TempDir()
	out := filepath.Join(base, "out")
	script, err := filepath.Abs("testdata/systemd.sh")
	if err := errors.Join(err, os.Mkdir(out, 0o755)); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		one(t, "first/out/spoolfs_*.deb"): "first.deb", one(t, "later/spoolfs_*.deb"): "later.deb",
		"testdata/systemd-driver.sh": "driver.sh",
	} {
		output(t, "cp", "--", from, filepath.Join(out, to))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	t.Cleanup(func() {
		groups, _ := filepath.Glob("/sys/fs/cgroup/unified/spoolfs-test-*")
		more, _ := filepath.Glob("/sys/fs/cgroup/spoolfs-test-*")
		for _, group := range append(groups, more...) {
			_ = os.Remove(group) // another's may be in use
		}
	})
	cmd := exec.CommandContext(ctx, "bash", script, base)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := cmd.CombinedOutput()
	log, _ := os.ReadFile(filepath.Join(out, "log"))
	if !strings.HasSuffix(strings.TrimSpace(string(log)), "all is well") {
		t.Fatalf("%v\n%s\nsystemd said\n%s", err, log, said)
	}
	t.Logf("%s", log)
}
