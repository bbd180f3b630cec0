package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"spoolfs/queue"
)

// TestExportPage: the pages of a store hold each message once, in its state, and
// none is large; what is no key is no page, and a page that is cut, or made of two,
// is seen to be none.
func TestExportPage(t *testing.T) {
	q, r, _ := newTestImporter(t)
	var ms []queue.Message
	for i := range 1000 {
		m := queue.Message{ID: queue.ID(fmt.Sprint("m", i)), Body: bytes.Repeat([]byte("x"), i*100)}
		if i%3 == 0 {
			m.Reason, m.Partial = "reason", i%2 == 0
		}
		ms = append(ms, m)
	}
	if err := r.Append(ms); err != nil {
		t.Fatal(err)
	}
	d := &daemon{queue: q, route: r}
	_, end, ok := splitPage(d.exportFile().Content())
	if !ok {
		t.Fatal("the first page is none")
	}
	seen, pages := map[string]string{}, 0
	for ; end.Next != ""; pages++ {
		key := end.Next
		text, err := d.exportPage(key)
		if err != nil {
			t.Fatal(err)
		}
		var body []byte
		if body, end, ok = splitPage(text); !ok || end.Key != key || len(text) > 2*pageBytes || bytes.Count(body, []byte("\n")) != end.Messages {
			t.Fatalf("a page of %d bytes and %d messages, %t", len(text), end.Messages, ok)
		}
		_, rest, _ := bytes.Cut(text, []byte("\n"))
		if _, _, ok := splitPage(rest); ok && len(body) > 0 {
			t.Error("a page without its first line passes")
		}
		if _, _, ok := splitPage(text[:len(text)-1]); ok {
			t.Error("a page that is cut passes")
		}
		for line := range bytes.Lines(body) {
			var b bundled
			if err := json.Unmarshal(line, &b); err != nil || seen[string(b.ID)] != "" {
				t.Fatalf("%v, or twice: %.100s", err, line)
			}
			seen[string(b.ID)] = b.State
		}
	}
	for i, m := range ms {
		want := stateReady
		if m.Partial {
			want = statePartial
		} else if m.Reason != "" {
			want = stateDead
		}
		if seen[string(m.ID)] != want {
			t.Fatalf("message %d is %q, want %s", i, seen[string(m.ID)], want)
		}
	}
	if pages < 40 || len(seen) != len(ms) {
		t.Errorf("%d pages of %d messages", pages, len(seen))
	}
	for _, key := range []string{"", "ready", "ready.0.0", "ready.0.0.other", "odd.0.0.default", "ready.x.0.default", "ready.0.-1.default", "ready.0.0.%zz", strings.Repeat("x", 255)} {
		if _, err := d.exportPage(key); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%q: %v", key, err)
		}
	}
}
