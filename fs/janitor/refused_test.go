package janitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"spoolfs/queue"
)

// TestJanitor_FullStore proves J1: while the store takes nothing the files stay,
// and they are taken when it has room.
func TestJanitor_FullStore(t *testing.T) {
	r := newRigOf(t, Options{Age: none}, queue.Limits{UserShare: 1, Messages: 10})
	var filler []queue.Message
	for i := range 10 {
		filler = append(filler, queue.Message{ID: queue.ID(fmt.Sprint("filler", i)), Body: []byte("x")})
	}
	if err := r.route.Append(filler); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		r.write(fmt.Sprint(i), record(fmt.Sprint(i)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.j.opts.step = func(step string) {
		if step == "store" {
			cancel() // it would try for ever
		}
	}
	if _, err := r.j.Pass(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the pass ended with %v", err)
	}
	if n := len(filesBelow(t, r.dir)); n != 5 {
		t.Fatalf("%d of 5 files are left, and nothing was stored", n)
	}
	leases, err := r.route.Lease(context.Background(), 10)
	if err == nil {
		err = r.route.Ack(leases...)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.j.opts.step = func(string) {}
	r.pass()
	if got := r.paths(); len(got) != 5 {
		t.Errorf("got %q", got)
	}
	check(t, "left", r.names(), nil)
}

// TestJanitor_UserShare: a user who has no more room in the queue keeps back
// nobody else's files.
func TestJanitor_UserShare(t *testing.T) {
	r := newRigOf(t, Options{Age: none}, queue.Limits{UserShare: 0.5, Messages: 20})
	for i := range 15 {
		r.write(fmt.Sprintf("greedy%02d", i), record("greedy"))
		if err := os.Chown(r.path(fmt.Sprintf("greedy%02d", i)), 64001, 64001); err != nil {
			t.Fatal(err)
		}
	}
	r.write("modest", record("modest"))
	r.pass()
	if got := r.paths(); len(got) != 11 || !slices.Contains(got, "modest") {
		t.Errorf("got %q", got)
	}
	if n := len(filesBelow(t, r.dir)); n != 5 {
		t.Errorf("%d files of the greedy user are left, want 5", n)
	}
}

// TestJanitor_ReadOnly: a directory that cannot be written to is an error and no
// more, and so is a full one in which there is a claim already.
func TestJanitor_ReadOnly(t *testing.T) {
	r := newRig(t, Options{Age: none})
	if err := unix.Mount("none", r.dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(r.dir, unix.MNT_DETACH) })
	r.write("f", record("f"))
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("none", r.dir, "tmpfs", unix.MS_REMOUNT|flags, "size=64k"); err != nil {
			t.Fatal(err)
		}
	}
	remount(unix.MS_RDONLY)
	for range 2 {
		if _, err := r.j.Pass(context.Background()); !errors.Is(err, unix.EROFS) {
			t.Errorf("the pass ended with %v, want EROFS", err)
		}
	}
	remount(0)
	r.pass()
	check(t, "messages", r.paths(), []string{"f"})
	r.write("g", record("g"))
	if err := os.WriteFile(r.path("ballast.tmp"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling the disk ended with %v", err)
	}
	r.pass()
	check(t, "messages", r.paths(), []string{"f", "g"})
	check(t, "left", r.names(), []string{"ballast.tmp"})
	r.j.Close()
}
