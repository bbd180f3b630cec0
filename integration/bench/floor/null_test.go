package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// output is what a program prints, by several goroutines.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// serve runs a file system until the test stops it.
func serve(t *testing.T, args ...string) (stop func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	t.Cleanup(func() { unix.Unmount(args[2], unix.MNT_DETACH) }) // of a test that failed
	out, ended := &output{}, make(chan error, 1)
	go func() { ended <- run(ctx, args, out) }()
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(out.String(), "ready") {
		select {
		case err := <-ended:
			t.Fatalf("%q ended: %v", args, err)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q is not ready after a minute", args)
		}
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// write writes a file by another process: the one that serves must not wait for
// itself.
func write(t *testing.T, path, text string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `printf %s "$2" > "$1"`, "sh", path, text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestNull: what is written to the floors is taken, and nothing is there then but
// what was put into the database.
func TestNull(t *testing.T) {
	for _, kind := range []string{"stock", "own"} {
		t.Run(kind, func(t *testing.T) {
			dir, store := t.TempDir(), filepath.Join(t.TempDir(), "db")
			args := []string{"null", kind, dir}
			if kind == "own" {
				args = append(args, store)
			}
			stop := serve(t, args...)
			write(t, filepath.Join(dir, "a"), "one")
			write(t, filepath.Join(dir, "a"), "two")
			stop()
			if kind == "own" {
				checkStored(t, store, "one", "two")
			}
		})
	}
}

func checkStored(t *testing.T, store string, want ...string) {
	t.Helper()
	db, err := openDB(store)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.First(); rows.Valid(); rows.Next() {
		found[string(rows.Value())] = true
	}
	if len(found) != len(want) {
		t.Errorf("stored %v, want %q", found, want)
	}
	for _, w := range want {
		if !found[w] {
			t.Errorf("%q is not stored", w)
		}
	}
}
