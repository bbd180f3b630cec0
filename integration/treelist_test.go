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
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.daemonPID()))
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
	if err != nil {
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
	if first > 2*time.Second && first > whole/4 {
		t.Errorf("the first of %d names came after %s, all after %s", n, first, whole)
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

// TestStatusTree_WhileAllGoesOn: operators list, read, remove and move while
// writers write and messages go out. Nothing good is lost or repeated because of
// it.
func TestStatusTree_WhileAllGoesOn(t *testing.T) {
	s := startSpool(t, "stdout:")
	const writers, files = 4, 40
	s.sh(fmt.Sprintf(`D=$M/.status/routes/default
	operate() { # a command, until the writers have ended
		while [ -e $M/.going ]; do "$@" > /dev/null 2>&1 || :; done
	}
	: > $M/.going
	operate bash -c "cat $D/pending/*; ls -l $D/pending $D/dead" & operate find $M/.status -type f -size +0 &
	operate bash -c "rm $D/dead/*" & operate bash -c "mv $D/dead/* $M/" & operate bash -c 'for i in pause resume; do echo $i > '$M'/.status/ctl; done' &
	for w in $(seq %d); do
		(for i in $(seq %d); do (echo '%s' | sed s/NAME/$w.$i/; echo garbage) > $M/f$w; done) & pids="${pids:-} $!"
	done
	wait $pids
	rm $M/.going
	wait
	echo resume > $M/.status/ctl`, writers, files, record("NAME")))
	s.untilSent()
	s.sh(`rm -f $M/.status/routes/default/dead/*`)
	got := map[string]int{}
	for _, body := range s.published() {
		got[strings.TrimSpace(body)]++
	}
	for w := range writers {
		for i := range files {
			if n := got[record(fmt.Sprintf("%d.%d", w+1, i+1))]; n != 1 {
				t.Errorf("file %d of writer %d was published %d times", i+1, w+1, n)
			}
		}
	}
	if len(got) != writers*files {
		t.Errorf("published %d messages, want %d", len(got), writers*files)
	}
	if q := s.status().Queue; q.Dead != 0 || q.Bytes != 0 {
		t.Errorf("left: %+v", q)
	}
}
