package rabbit

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

func TestRemoveOrphans(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dirs := make(map[string]string)
	for _, name := range []string{"orphan", "owned", "new"} {
		dir, err := os.MkdirTemp("", dirPrefix)
		if err != nil {
			t.Fatal(err)
		}
		dirs[name] = dir
	}
	long := time.Now().Add(-2 * orphanAge)
	for _, name := range []string{"orphan", "owned"} {
		if err := os.Chtimes(dirs[name], long, long); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := lockDir(dirs["owned"])
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()

	removeOrphans()
	for name, dir := range dirs {
		_, err := os.Stat(dir)
		if got, want := errors.Is(err, fs.ErrNotExist), name == "orphan"; got != want {
			t.Errorf("%s: removed is %v, want %v", name, got, want)
		}
	}
}
