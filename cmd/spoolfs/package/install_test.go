package packaging_test

import "testing"

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
	pattern := map[string]string{"deb": "spoolfs_*.deb", "rpm": "spoolfs-*.rpm"}[kind]
	runScript(t, "install.sh", []string{
		"FIRST=" + one(t, "first/out/"+pattern), "LATER=" + one(t, "later/"+pattern),
		"PROGRAM=" + one(t, "first/out/package/bin/spoolfs"), "LATER_VERSION=" + laterVersion,
	}, kind, t.TempDir())
}
