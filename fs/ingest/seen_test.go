package ingest

import (
	"strconv"
	"strings"
	"testing"

	"spoolfs/queue"
)

// TestSarracenia_Repeats: of python's records those that stand in the file already
// are left out, plain ones never.
func TestSarracenia_Repeats(t *testing.T) {
	other := strings.Replace(python, "2026", "2027", 1)
	file := strings.Join([]string{python, plain, python, plain, other, python + "\r", ""}, "\n")
	seen := new(Seen)
	for range 2 { // what is decoded again, since it could not be stored, is all there
		res := NewSarracenia(SarraceniaOptions{}).Decode([]byte(file), Position{Seen: seen})
		if got, want := linesOf(res.Messages), "1 2 4 5"; got != want || res.Repeated != 2 || res.Lines != 6 {
			t.Errorf("lines %s came out and %d were repeats, want %s and 2", got, res.Repeated, want)
		}
	}
	res := NewSarracenia(SarraceniaOptions{}).Decode([]byte(python), Position{Line: 6, Seen: seen})
	if res.Tail != nil {
		t.Errorf("the tail repeats line 1, and is %+v", res.Tail)
	}
	seen.Forget(0)
	res = NewSarracenia(SarraceniaOptions{}).Decode([]byte(plain+"\n"+python), Position{Seen: seen})
	if res.Tail == nil || res.Tail.Dead() {
		t.Errorf("when the lines have changed the tail is %+v", res.Tail)
	}
	// The tail was no line yet: what is appended makes another one of it.
	res = NewSarracenia(SarraceniaOptions{}).Decode([]byte(plain+"\nx\n"+python+"\n"), Position{Seen: seen})
	if got, want := linesOf(res.Messages), "1 2 3"; got != want {
		t.Errorf("lines %s came out, want %s", got, want)
	}
}

func linesOf(ms []queue.Message) string {
	var lines []string
	for _, m := range ms {
		lines = append(lines, string(rune('0'+m.Line)))
	}
	return strings.Join(lines, " ")
}

// TestSeen_IsBounded: a file that grows for ever does not take memory for ever, and
// what stood in it not long ago is still known.
func TestSeen_IsBounded(t *testing.T) {
	seen := new(Seen)
	const n = maxSeen + maxSeen/4
	text := func(i int) []byte { return strconv.AppendInt(nil, int64(i), 10) }
	for i := range n {
		if seen.repeats(text(i), i, true) {
			t.Fatalf("line %d is taken for a repeat", i)
		}
	}
	if len(seen.lines) > maxSeen {
		t.Errorf("%d records are remembered, want at most %d", len(seen.lines), maxSeen)
	}
	for _, i := range []int{n - 1, n - maxSeen/2} {
		if !seen.repeats(text(i), n, true) {
			t.Errorf("line %d is forgotten", i)
		}
	}
}
