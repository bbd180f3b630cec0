package fs

import (
	"strings"
	"testing"
)

// TestMount_OperationsCounted: requests and their refusals are counted by their kind.
func TestMount_OperationsCounted(t *testing.T) {
	m := newRig(t, Options{FileLimit: 1000}).mount()
	before := m.fs.Operations()
	m.sh(`echo x > $M/f; ! (head -c 2000 /dev/zero > $M/large) 2> /dev/null`)
	m.untilReleased()
	after := m.fs.Operations()
	if len(after) != int(operationCount) {
		t.Errorf("%d kinds, want %d", len(after), operationCount)
	}
	for op, want := range map[string]uint64{"create": 2, "release": 2, "write": 2, "rename": 0} {
		if got := after[op].Count() - before[op].Count(); got != want {
			t.Errorf("%d times %s, want %d", got, op, want)
		}
	}
	refused := m.fs.Refused()
	for reason, n := range refused {
		want := uint64(0)
		if reason == "file-size" {
			want = 1
		}
		if n != want || strings.ToLower(reason) != reason {
			t.Errorf("%d were refused for %q, want %d", n, reason, want)
		}
	}
	m.fs.Refuse(true)
	m.sh(`! (echo x > $M/g) 2> /dev/null; ! cat $M/nothing 2> /dev/null`)
	if n := m.fs.Refused()["draining"]; n != 1 {
		t.Errorf("%d were refused as it drains", n)
	}
}
