package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// namespaceEnv is set in a test process that has a mount namespace of its own.
const namespaceEnv = "SPOOLFS_TEST_NAMESPACE"

// TestMain runs the tests in a mount namespace of their own, in which nobody else
// has a spool mounted. The scripts run the program, which is this very binary
// under another name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "spoolfs" {
		if os.Getenv(namespaceEnv) == "" {
			os.Exit(runInNamespace())
		}
		if err := unmountSpools(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	testscript.Main(m, map[string]func(){"spoolfs": main})
}

func runInNamespace() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), namespaceEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the tests mount, and need root for that:", err)
		return 1
	}
	return 0
}

// unmountSpools detaches all spools of the namespace.
func unmountSpools() error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", m.Mountpoint, err)
		}
	}
	return nil
}
