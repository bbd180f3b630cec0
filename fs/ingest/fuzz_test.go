package ingest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"spoolfs/queue"
)

// FuzzSarracenia_Decode decodes any bytes, at once and in two pieces.
func FuzzSarracenia_Decode(f *testing.F) {
	seedCorpus(f)
	f.Add([]byte(mixed), uint(3), false)
	f.Add([]byte(mixed), uint(200), true)
	for _, fields := range []string{
		`, "a": {"py/set": [1, {"k": 2}]}, "b": {"py/id": 1}`,
		`, "a": [[7], {"py/id": 2}], "b": {"py/tuple": [{"py/id": 1}]}`,
		`, "fileOp": {"rename": "x", "link": "y"}, "size": "7", "blocks": {"method": "inplace"}`,
		`, "identity": {"method": "md5", "value": "AQID\n"}, "exchange": ["x", "y"], "topic": "\ud83c"`,
	} {
		f.Add([]byte(pyRecord("", fields)+"\n"), uint(20), false)
		f.Add([]byte(pyRecord("", fields)), uint(20), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint, v02 bool) {
		opts := SarraceniaOptions{MaxLine: 4096, MaxDepth: 20}
		if v02 {
			opts.TopicPrefix = "v02.post"
		}
		decoder := NewSarracenia(opts)
		res := decoder.Decode(data, Position{Seen: new(Seen)})
		checkResult(t, opts, data, res)
		if pieces := decodePieces(decoder, data, int(cut%uint(len(data)+1))); !reflect.DeepEqual(pieces, res) {
			t.Errorf("in two pieces:\n got %+v\nwant %+v", pieces, res)
		}
	})
}

// seedCorpus adds the small files of the corpus whole and a line of each other
// one. Large seeds would make the fuzzer spend its time on shrinking them.
func seedCorpus(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("testdata/corpus/*/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		if filepath.Ext(file) == ".json" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) > 1200 {
			data = data[:bytes.IndexByte(data, '\n')+1]
		}
		if len(data) <= 1200 {
			f.Add(data, uint(len(data)/2), len(data)%2 == 0)
		}
	}
}

// checkResult checks what is true of any result.
func checkResult(t *testing.T, opts SarraceniaOptions, data []byte, res Result) {
	t.Helper()
	whole, rest := data[:res.Consumed], data[res.Consumed:]
	if len(whole) > 0 && whole[len(whole)-1] != '\n' || bytes.IndexByte(rest, '\n') >= 0 {
		t.Errorf("consumed %d of %d bytes, which is not up to the last line end", res.Consumed, len(data))
	}
	if got := bytes.Count(whole, []byte("\n")); got != res.Lines || len(res.Messages)+res.Skipped+res.Repeated != got {
		t.Errorf("%d lines, %d messages and %d skipped from %d lines", res.Lines, len(res.Messages), res.Skipped, got)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	before := uint32(0)
	for i := range res.Messages {
		m := &res.Messages[i]
		if m.Line <= before || int(m.Line) > res.Lines {
			t.Fatalf("line %d after line %d of %d", m.Line, before, res.Lines)
		}
		before = m.Line
		checkDecoded(t, opts, m, lines[m.Line-1])
	}
	if res.Tail != nil {
		if int(res.Tail.Line) != res.Lines+1 {
			t.Errorf("tail on line %d of %d", res.Tail.Line, res.Lines)
		}
		checkDecoded(t, opts, res.Tail, rest)
	}
}

// checkDecoded checks what is true of any message from that line.
func checkDecoded(t *testing.T, opts SarraceniaOptions, m *queue.Message, line []byte) {
	t.Helper()
	switch {
	case m.Dead():
		if !bytes.Equal(m.Body, line) {
			t.Errorf("line %d: dead letter of %q, want %q", m.Line, m.Body, line)
		}
	case m.ContentType == "application/json":
		if !json.Valid(m.Body) {
			t.Errorf("line %d: body is not JSON: %q", m.Line, m.Body)
		}
		if limit := 10*opts.MaxLine + 2; len(m.Body) > limit {
			t.Errorf("line %d: body of %d bytes", m.Line, len(m.Body))
		}
		checkStable(t, opts, m)
	case m.ContentType == "text/plain":
		if m.Headers == nil || len(bytes.SplitN(m.Body, []byte(" "), 3)) < 3 {
			t.Errorf("line %d: not v02: %q %v", m.Line, m.Body, m.Headers)
		}
	case m.ContentType == "application/geo+json":
		if !json.Valid(m.Body) {
			t.Errorf("line %d: body is not JSON: %q", m.Line, m.Body)
		}
	default:
		t.Errorf("line %d: content type %q", m.Line, m.ContentType)
	}
}

// checkStable: what is published is published again as it is when somebody writes
// it into the mount.
func checkStable(t *testing.T, opts SarraceniaOptions, m *queue.Message) {
	t.Helper()
	body := bytes.TrimSuffix(m.Body, []byte("\n"))
	if len(body) > opts.MaxLine {
		return
	}
	opts.TopicPrefix = "" // or a record that asked for v03 would become one of v02
	again := NewSarracenia(opts).Decode(append(bytes.Clone(body), '\n'), Position{Line: 1})
	if len(again.Messages) != 1 || !bytes.Equal(bytes.TrimSuffix(again.Messages[0].Body, []byte("\n")), body) {
		t.Errorf("line %d: %q became %+v", m.Line, body, again)
	}
}
