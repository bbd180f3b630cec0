package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestCLI_PurgeMany: very many dead letters are let go again, and removed, by one
// command each, which tells how many. With SPOOLFS_CHAOS=1 it is a million.
func TestCLI_PurgeMany(t *testing.T) {
	n := 20_000
	if os.Getenv("SPOOLFS_CHAOS") != "" {
		n = 1_000_000
	}
	s := newSpool(t, plainBinary, deadBroker, "--exchange", "x")
	for left := n; left > 0; left -= min(left, 100_000) {
		s.fillStore(someMessages(min(left, 100_000), "refused: no"))
	}
	s.start()
	for _, args := range [][]string{
		{"dead", "redrive", "--reason=refused"}, {"pending", "purge", "--older-than=1h"},
	} {
		began := time.Now()
		out, err := exec.Command(plainBinary, append(args, "--json", s.dir)...).Output()
		if err != nil {
			t.Fatalf("%v: %v, %s", args, err, out)
		}
		var got struct{ Matched, Done, Refused, Busy int }
		if err := json.Unmarshal(out, &got); err != nil || got.Matched != n || got.Done != n || got.Refused+got.Busy != 0 {
			t.Errorf("%v: %v in %s", args, err, out)
		}
		t.Logf("%v: %d in %s", args, n, time.Since(began).Round(time.Millisecond))
	}
	if q := s.status().Queue; q.Ready+q.Dead+q.Leased+q.Delayed != 0 {
		t.Errorf("left: %+v", q)
	}
}
