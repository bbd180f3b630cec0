package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"spoolfs/queue"
)

// TestExportPage: the pages of a store hold each message of each route once, in its
// state, and none is large; what is no key is no page, and a page that is cut, or made
// of two, is seen to be none.
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
	others := delayedIn(t, q, "a", "b.c%")
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
			seen[string(b.ID)] = strings.TrimPrefix(b.Route+" "+b.State, defaultRoute+" ")
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
	for id, want := range others {
		if seen[id] != want {
			t.Errorf("message %s is %q, want %s", id, seen[id], want)
		}
	}
	if pages < 40 || len(seen) != len(ms)+len(others) {
		t.Errorf("%d pages of %d messages", pages, len(seen))
	}
	for _, key := range []string{"", "ready", "ready.0.0", "ready.0.0.other", "odd.0.0.default", "ready.x.0.default", "ready.0.-1.default", "ready.0.0.%zz", strings.Repeat("x", 255)} {
		if _, err := d.exportPage(key); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// delayedIn fills routes with messages of which one of three is delayed. It returns
// where each is.
func delayedIn(t *testing.T, q *queue.Queue, routes ...string) map[string]string {
	t.Helper()
	where := map[string]string{}
	for _, name := range routes {
		r, err := q.Route(name)
		if err != nil {
			t.Fatal(err)
		}
		var ms []queue.Message
		for i := range 900 {
			m := queue.Message{ID: queue.ID(fmt.Sprint(name, i)), Body: []byte("x")}
			ms, where[string(m.ID)] = append(ms, m), name+" "+stateReady
		}
		if err := r.Append(ms); err != nil {
			t.Fatal(err)
		}
		leases, err := r.Lease(t.Context(), 300)
		if err != nil || len(leases) != 300 {
			t.Fatalf("%d leases, %v", len(leases), err)
		}
		for _, l := range leases {
			where[string(l.ID)] = name + " " + stateDelayed
			if err := r.Nack(l, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return where
}
