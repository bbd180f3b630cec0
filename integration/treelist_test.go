package integration

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// memory reads a line of the program's /proc/<pid>/status, in bytes.
func (s *spool) memory(key string) int64 {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range lines(string(text)) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return kib << 10
		}
	}
	s.t.Fatalf("no %s in %s", key, text)
	return 0
}

// TestStatusTree_ListMany: a listing of very many messages starts at once,
// whatever their number, takes little memory and holds up no writer; and what was
// listed is found without a scan. With SPOOLFS_CHAOS=1 it is a million.
func TestStatusTree_ListMany(t *testing.T) {
	n := 60_000
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		n = 1_000_000
	}
	s := newSpool(t, plainBinary, deadBroker, "--exchange", "x")
	for left := n; left > 0; left -= min(left, 100_000) {
		s.fillStore(someMessages(min(left, 100_000), ""))
	}
	s.start()
	before := s.memory("VmRSS")

	began := time.Now()
	dir, err := os.Open(filepath.Join(s.dir, ".status", "routes", "default", "pending"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(1)
	first := time.Since(began)
	if err != nil || first > 2*time.Second {
		t.Errorf("the first of %d names came after %s: %v", n, first, err)
	}
	longest := time.Duration(0)
	for err == nil {
		var more []string
		more, err = dir.Readdirnames(n / 20)
		names = append(names, more...)
		wrote := time.Now()
		if err := os.WriteFile(filepath.Join(s.dir, "f"), []byte(record("while")+"\n"), 0o644); err != nil {
			t.Error(err)
		}
		longest = max(longest, time.Since(wrote))
	}
	whole := time.Since(began)
	if !errors.Is(err, io.EOF) || len(names) < n || len(names) > n+25 {
		t.Fatalf("listed %d names, want %d: %v", len(names), n, err)
	}
	grown := s.memory("VmHWM") - before
	if grown > 200<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}

	began = time.Now()
	const looks = 2000 // which would be hours with a scan each
	for range looks {
		name := names[rand.N(len(names))]
		text, err := os.ReadFile(filepath.Join(dir.Name(), name))
		if err != nil || !strings.Contains(string(text), "\nid "+name+"\n") {
			t.Fatalf("%s: %v in\n%s", name, err, text)
		}
	}
	t.Logf("first of %d names after %s, all after %s with %d MiB more and writes of at most %s; %d of them read in %s",
		n, first, whole, grown>>20, longest, looks, time.Since(began))
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%d names were read in %s", looks, took)
	}
}
