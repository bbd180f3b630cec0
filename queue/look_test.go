package queue

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLook: what is known of a store, and which process has it.
func TestLook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if got, err := Look(dir); err != nil || got != (StoreInfo{Format: formatVersion}) {
		t.Errorf("before there is one: %+v, %v", got, err)
	}
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), "QUEUE_TEST_HOLD="+dir)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if got, err := Look(dir); err != nil || got != (StoreInfo{Exists: true, Format: formatVersion, Owner: holder.Process.Pid, InUse: true}) {
		t.Errorf("while it is open: %+v, %v, want owner %d", got, err, holder.Process.Pid)
	}
	holder.Process.Kill()
	holder.Wait()
	if got, err := Look(dir); err != nil || got != (StoreInfo{Exists: true, Format: formatVersion}) {
		t.Errorf("after that: %+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, formatFile), []byte("spoolfs store 99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Look(dir); !errors.Is(err, ErrNewerStore) {
		t.Errorf("a newer one: %v", err)
	}
}
