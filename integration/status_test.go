package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatus: the status files can be read, have true sizes, and agree with the
// command, whose JSON has the keys that monitoring relies on.
func TestStatus(t *testing.T) {
	s := startSpool(t, deadBroker, "--exchange", "xs_example")
	s.sh(fmt.Sprintf(`(echo '%s'; echo garbage) > $M/f`, record("a")))
	s.untilIngested(1)
	s.until("waiting for the broker", func() bool { return s.status().Publisher.LastError != "" })
	s.sh(`for f in summary status.json queue publisher fs; do
		size=$(stat -c %s $M/.status/$f); read=$(cat $M/.status/$f | wc -c); copied=$(cp $M/.status/$f /dev/stdout | wc -c)
		[ $size -gt 50 ] && [ $read -gt 50 ] && [ $copied -gt 50 ]
	done
	exec 3< $M/.status/summary; size=$(stat -L -c %s /dev/fd/3); [ $size = $(wc -c <&3) ]
	ls -la $M/.status | grep -q "root root *[1-9][0-9]* .* summary"`)

	out, err := exec.Command(plainBinary, "status", "--json", s.dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, key := range strings.Fields(`version
		queue.ready queue.leased queue.delayed queue.dead queue.staged queue.bytes queue.oldest_ready_seconds
		publisher.state publisher.in_flight publisher.confirmed_total publisher.last_error
		fs.open_files fs.ingested_files_total fs.ingested_messages_total`) {
		var v any = got
		for part := range strings.SplitSeq(key, ".") {
			v = v.(map[string]any)[part]
		}
		if v == nil {
			t.Errorf("status.json has no %s", key)
		}
	}
	q := s.status().Queue
	if q.Ready != 1 || q.Dead != 1 || q.Leased+q.Delayed+q.Staged != 0 || q.Bytes == 0 || q.OldestReadySeconds <= 0 {
		t.Errorf("the queue is %+v, want one message ready and one dead", q)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, ".status", "queue"))
	if err != nil || !strings.Contains(string(text), "\nready 1\n") || !strings.Contains(string(text), "\ndead 1\n") {
		t.Errorf("%v in\n%s", err, text)
	}
	out, err = exec.Command(plainBinary, "status", s.dir).Output()
	if err != nil || !strings.Contains(string(out), "1 ready") || !strings.Contains(string(out), "connection refused") {
		t.Errorf("%v in\n%s", err, out)
	}
}
