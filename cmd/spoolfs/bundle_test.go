package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"spoolfs/queue"
)

// fullMessage has something in each field, and bytes that are no UTF-8.
func fullMessage() queue.Message {
	return queue.Message{
		ID: "0123456789abcdef0123456789abcdef-7", Ingested: time.Unix(1_800_000_000, 123456789).UTC(), File: "f\xff\n", UID: 7, Line: 7, Subject: "s\xff", Attempts: 3,
		Words: []string{"a", "", "\xe9", "é"}, Key: "k\x00", HasKey: true, Exchange: "x", PubTime: time.Unix(1_700_000_000, 5).UTC(),
		ContentType: "t", ContentEncoding: "e", Headers: []queue.Header{{Name: "h", Value: "\xfe"}, {Name: "h", Value: ""}, {Name: "n", Value: "3", JSON: true}},
		Properties: []queue.Property{{Name: "priority", Value: "1"}}, Body: []byte("\x00\x01\xffbody\n"), Reason: "not-json: \xff",
	}
}

// TestBundle_RoundTrip: nothing of a message is lost, whatever bytes it has; and
// a field that is added to messages does not get lost either.
func TestBundle_RoundTrip(t *testing.T) {
	full := fullMessage()
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		if v.Field(i).IsZero() && v.Type().Field(i).Name != "Partial" {
			t.Fatalf("the test does not know the field %s", v.Type().Field(i).Name)
		}
	}
	if header := (queue.Header{Name: "n", Value: "3", JSON: true}); reflect.TypeOf(header).NumField() != 3 || full.Headers[2] != header {
		t.Fatal("the test does not know a field of headers")
	}
	partial := full
	partial.Partial = true
	ready := full
	ready.Reason = ""
	bare := queue.Message{ID: "x", Body: []byte("b")}
	empty := bare
	empty.Headers, empty.HasKey = []queue.Header{}, true
	for state, m := range map[string]queue.Message{
		stateDead: full, statePartial: partial, stateReady: ready, stateDelayed: bare, stateReady + " ": empty,
	} {
		line := bundleLine("r", strings.TrimSpace(state), &m)
		if bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%q is no line", line)
		}
		var b bundled
		if err := json.Unmarshal(line, &b); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		got, err := b.message()
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("got %+v, %v, want %+v", got, err, m)
		}
	}
	if line := string(bundleLine("r", stateReady, &full)); !strings.Contains(line, `"state":"dead"`) {
		t.Errorf("a record that cannot be read is %s", line)
	}
	if head := string(newBundleHead(queue.NewFileID(), "x")); !strings.HasPrefix(head, bundleBegin) {
		t.Errorf("the head is %s", head)
	}
}

// newTestImporter imports into a store of its own.
func newTestImporter(t *testing.T) (*queue.Queue, *queue.Route, func() *importer) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	q, _, err := queue.Open(t.TempDir(), queue.Options{Logger: log, Limits: queue.Limits{UserShare: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	r, err := q.Route(defaultRoute)
	if err != nil {
		t.Fatal(err)
	}
	return q, r, func() *importer { return newImporter(q, func(string) (*queue.Route, error) { return r, nil }, log) }
}

// TestImporter_Routes: messages go to the routes that they have been in, also when
// lines of several are mixed, and once, also when the bundle comes again after a cut.
func TestImporter_Routes(t *testing.T) {
	q, _, _ := newTestImporter(t)
	bundle := newBundleHead(queue.NewFileID(), "")
	want := map[string]uint64{"default": 4, "a": 5, "b": 3}
	names := []string{"a", "default", "a", "b", "b", "default", "a", "default", "a", "b", "default", "a"}
	for i, name := range names {
		bundle = append(bundle, bundleLine(name, stateReady, &queue.Message{ID: queue.NewFileID().MessageID(uint32(i)), Body: []byte("b")})...)
	}
	for _, size := range []int{len(bundle) * 2 / 3, len(bundle), len(bundle)} {
		im := newImporter(q, q.Route, slog.New(slog.DiscardHandler))
		if err := im.Write(bundle[:size]); err != nil {
			t.Fatal(err)
		}
		if err := im.Flush(); (err != nil) != (bundle[size-1] != '\n') {
			t.Errorf("flush at %d: %v", size, err)
		}
	}
	for name, n := range want {
		r, err := q.Route(name)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := r.Stats(); err != nil || s.Ready != n {
			t.Errorf("route %s has %+v, %v, want %d", name, s, err, n)
		}
	}
}

// TestImporter_EverySplit: a bundle comes in pieces of any size, is cut, and comes
// again: each message is stored once, and what is no bundle is refused without a
// message lost that stands before it.
func TestImporter_EverySplit(t *testing.T) {
	_, r, again := newTestImporter(t)
	ready := func() int {
		t.Helper()
		s, err := r.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return int(s.Ready)
	}
	total := 0
	for size := 1; size < 700; size += 13 {
		bundle := newBundleHead(queue.NewFileID(), "")
		for i := range 3 {
			bundle = append(bundle, bundleLine("r", stateReady, &queue.Message{ID: queue.NewFileID().MessageID(uint32(i)), Body: []byte("b")})...)
		}
		im := again()
		cut := bundle[:min(len(bundle), size)]
		if err := im.Write(cut); err != nil {
			t.Fatal(err)
		}
		if err := im.Flush(); (err != nil) != (cut[len(cut)-1] != '\n') {
			t.Errorf("a bundle cut at %d is %v", size, err)
		}
		for range 2 {
			im = again()
			for rest := bundle; len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if err := im.Write(rest[:min(size, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			if err := im.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if total += 3; ready() != total {
			t.Fatalf("%d messages, want %d, in pieces of %d", ready(), total, size)
		}
	}
	good := string(newBundleHead(queue.NewFileID(), "")) + string(bundleLine("r", stateReady, &queue.Message{ID: "good", Body: []byte("b")}))
	for name, bad := range map[string]string{
		"no head": string(bundleLine("r", stateReady, &queue.Message{ID: "x"})), "no JSON": good + "{\n", "no id": good + "{\"state\": \"ready\"}\n",
		"no state": good + "{\"id\": \"x\"}\n", "newer": `{"spoolfs_bundle": 2, "id": "0"}` + "\n", "dead without reason": good + "{\"id\": \"x\", \"state\": \"dead\"}\n",
		"changed": strings.Replace(good, "good", "evil", 1),
	} {
		im := again()
		if name == "changed" {
			if err := im.Write([]byte(good)); err != nil {
				t.Fatal(err)
			}
			im = again()
		}
		if err := im.Write([]byte(bad)); !errors.Is(err, errBundle) {
			t.Errorf("%s: %v", name, err)
		}
		if err := im.Flush(); err == nil {
			t.Errorf("%s: the close succeeds", name)
		}
	}
	if ready() != total+1 {
		t.Errorf("%d messages, want %d", ready(), total+1)
	}
}

// FuzzImporter: whatever is written into it, it does not panic.
func FuzzImporter(f *testing.F) {
	m := fullMessage()
	f.Add(append(newBundleHead(queue.NewFileID(), ""), bundleLine("r", stateDead, &m)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		for line := range bytes.Lines(data) {
			var b bundled
			if json.Unmarshal(line, &b) == nil {
				_, _ = b.message()
			}
		}
	})
}

// TestDiskqueue_RoundTrip: what is written for sr3 is read as the same message,
// and what sr3 has written twice comes once.
func TestDiskqueue_RoundTrip(t *testing.T) {
	for _, text := range []string{
		`{ "pubTime" : "20261130T070000", "baseUrl" : "http://h", "relPath" : "a/b/c.txt", "x" : 1.00000000000000000001 }  ` + "\n",
		`{"pubTime": "20261130T070000", "baseUrl": "http://h", "relPath": "\u00e9", "identity": {"method": "md5", "value": "x=="}}` + "\n",
	} {
		bundle, found := bundleOfDiskqueue("f", []byte(text), "v03")
		if !found {
			t.Fatalf("no message in %s", text)
		}
		first := messagesOf(t, bundle)[0]
		first.Exchange, first.Key, first.HasKey = "xs_other", "v03.k", true
		line, ok := diskqueueLine(&first)
		if !ok || !json.Valid(line) || bytes.Count(line, []byte("\n")) != 1 {
			t.Fatalf("the line is %s", line)
		}
		bundle, _ = bundleOfDiskqueue("g", append(bytes.Clone(line), line...), "v03")
		second := messagesOf(t, bundle)
		if len(second) != 1 {
			t.Fatalf("%d messages in %s", len(second), bundle)
		}
		var want, got map[string]any
		if err := errors.Join(json.Unmarshal(first.Body, &want), json.Unmarshal(second[0].Body, &got)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the body is %s, want %s, %v", second[0].Body, first.Body, err)
		}
		if second[0].Exchange != "xs_other" || second[0].Key != "v03.k" || strings.Contains(text, "1.00000000000000000001") && !bytes.Contains(second[0].Body, []byte("1.00000000000000000001")) {
			t.Errorf("got %+v", second[0])
		}
	}
	raw := queue.Message{ID: "x", Body: []byte("raw")}
	if _, ok := diskqueueLine(&raw); ok {
		t.Error("what is no v03 message is written for sr3")
	}
}

func messagesOf(t *testing.T, bundle []byte) []queue.Message {
	t.Helper()
	var all []queue.Message
	for line := range bytes.Lines(bundle) {
		if bytes.HasPrefix(line, []byte(bundleBegin)) {
			continue
		}
		var b bundled
		if err := json.Unmarshal(line, &b); err != nil {
			t.Fatal(err)
		}
		m, err := b.message()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}
