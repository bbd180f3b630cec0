package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// backlog is how many messages the tests of this file queue: enough for several
// levels of files, and with SPOOLFS_CHAOS the ten million of the design.
func backlog() int {
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		return 10_000_000
	}
	return 50_000
}

// fill appends n messages of 480 bytes.
func fill(t testing.TB, r *Route, n int) {
	t.Helper()
	const batch = 2000
	body := strings.Repeat("x", 200) + strconv.Itoa(os.Getpid())
	for at := 0; at < n; at += batch {
		ms := messages(NewFileID(), min(batch, n-at))
		for i := range ms {
			ms[i].Body = fmt.Appendf(nil, `{"n": %d, "body": %q, "more": %q}`, at+i, body, strings.Repeat("y", 230))
		}
		if err := r.Append(ms); err != nil {
			t.Fatal(err)
		}
	}
}

// drain leases and acks n messages.
func drain(t testing.TB, r *Route, n int) {
	t.Helper()
	for n > 0 {
		leases, err := r.Lease(t.Context(), min(n, 256))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Ack(leases...); err != nil {
			t.Fatal(err)
		}
		n -= len(leases)
	}
}

// storeSize is the size of the files of a store in bytes, ballast not counted.
func storeSize(t testing.TB, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ballastFile {
			return nil // it may have been deleted meanwhile
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// residentBytes is the memory of this process (VmRSS).
func residentBytes(t testing.TB) int64 {
	t.Helper()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestQueue_OpensFastAndGivesBack: opening reads no messages, and after a drain
// the space comes back while the queue runs (G8, D10, D17).
func TestQueue_OpensFastAndGivesBack(t *testing.T) {
	dir, n := t.TempDir(), backlog()
	q, _, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := q.Route("default")
	if err != nil {
		t.Fatal(err)
	}
	fill(t, r, n)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	full := storeSize(t, dir)

	before, start := residentBytes(t), time.Now()
	if q, _, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	took, grown := time.Since(start), residentBytes(t)-before
	if r, err = q.Route("default"); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d messages in %d MiB opened in %s with %d MiB", n, full>>20, took.Round(time.Millisecond), grown>>20)
	if s, err := r.Stats(); err != nil || s.Ready != uint64(n) {
		t.Fatalf("stats are %+v, %v", s, err)
	}
	if grown > 128<<20 {
		t.Errorf("opening took %d MiB of memory, want at most 128", grown>>20)
	}
	start = time.Now()
	drain(t, r, n)
	t.Logf("drained in %s", time.Since(start).Round(time.Millisecond))
	waitForSize(t, dir, 64<<20)
	checkScan(t, r)
}

// waitForSize waits until the store is smaller than limit, at most a minute.
func waitForSize(t testing.TB, dir string, limit int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for start := time.Now(); ; {
		size := storeSize(t, dir)
		if size < limit {
			t.Logf("%d MiB are left after %s", size>>20, time.Since(start).Round(time.Millisecond))
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("a minute after the drain the store has %d MiB, want under %d", size>>20, limit>>20)
		}
	}
}

// TestRoute_SweepSparesStages (D20): the range deletions of a sweep go around stages,
// and a stage that is committed late is served.
func TestRoute_SweepSparesStages(t *testing.T) {
	q, r := openQueue(t, Options{CommitGrace: -1})
	var open []*Stage
	for range 5 {
		open = append(open, putStage(t, r, 2))
		if err := r.Append(messages(NewFileID(), sweepRows)); err != nil {
			t.Fatal(err)
		}
	}
	drain(t, r, 5*sweepRows)
	if err := q.tend(); err != nil {
		t.Fatal(err)
	}
	if r.count.swept < 5*sweepRows {
		t.Errorf("swept up to %d", r.count.swept)
	}
	checkScan(t, r)
	for _, s := range open {
		commit(t, s)
	}
	if got, want := ids(leaseAll(t, r, 10)), stageIDs(open...); got != want {
		t.Errorf("leased\n%swant\n%s", got, want)
	}
}
