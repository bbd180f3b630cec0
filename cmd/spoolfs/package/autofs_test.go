package packaging_test

import (
	"os"
	"testing"
)

// TestAutofs: who writes into a spool of an autofs map has it mounted, by the helper;
// it goes when nobody uses it, and comes back with what was in it.
func TestAutofs(t *testing.T) {
	if _, err := os.Stat("/dev/autofs"); err != nil {
		t.Skip("the kernel has no autofs")
	}
	runScript(t, "autofs.sh", nil, t.TempDir(), one(t, "first/out/package/bin/spoolfs"))
}
