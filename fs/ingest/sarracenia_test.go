package ingest

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spoolfs/queue"
)

// plain is a record as sr3c writes it, python one as sr3 keeps it, and retry
// one of sarra v2.
const (
	plain  = `{ "pubTime" : "20261130T071709.3792", "baseUrl" : "file:", "relPath" : "a/b/c.txt" }  `
	python = `{"py/object": "sarracenia.Message", "_deleteOnPost": {"py/set": ["exchange"]}, "exchange": ["xs"], ` +
		`"pubTime": "20261130T073051.93", "baseUrl": "file:", "relPath": "a/b/c.txt", "__dict__": {}}`
	retry = `["v02.post.a", {"sum": "d,00"}, "20261130073051.93 file: a/b"]`
)

// mixed is a small file of everything that can stand in one.
var mixed = "\uFEFF" + plain + "\n\n \t\r\n" + python + "\r\n\x00\x00" + plain + "\x00\nhello\n" + retry + "\n" +
	"\x00\x00\n\x00" + plain[:9] + "\x00" + plain[9:] + "\nl\xe9tin\n" + plain + plain + "\n\uFEFF" + plain + "\n" + `{"pubTime": `

func TestSarracenia_Mixed(t *testing.T) {
	got := decodeFile(NewSarracenia(SarraceniaOptions{}), []byte(mixed))
	want := []string{
		"1 message", "4 message", "5 message", "6 not-json", "7 message", "8 nul-only", "9 nul-inside",
		"10 not-utf8", "11 trailing-garbage", "12 not-json", "13 torn-last-line",
	}
	if s := summary(got.Messages); !reflect.DeepEqual(s, want) {
		t.Errorf("got %q, want %q", s, want)
	}
	if got.Skipped != 2 || got.Lines != 12 {
		t.Errorf("%d lines of which %d skipped, want 12 and 2", got.Lines, got.Skipped)
	}
}

// summary is line number and reason of each message.
func summary(messages []queue.Message) []string {
	var lines []string
	for _, m := range messages {
		if m.Reason == "" {
			m.Reason = "message"
		}
		lines = append(lines, fmt.Sprint(m.Line, " ", m.Reason))
	}
	return lines
}

// decodePieces decodes a file that grows to each of the given sizes in turn, as
// FLUSH by FLUSH.
func decodePieces(f Format, data []byte, sizes ...int) Result {
	var all Result
	seen := new(Seen)
	for _, size := range append(sizes, len(data)) {
		// The piece is a copy which is wiped afterwards: nothing may refer to it.
		piece := bytes.Clone(data[all.Consumed:size])
		res := f.Decode(piece, Position{Line: all.Lines, Seen: seen})
		clear(piece)
		all.Messages = append(all.Messages, res.Messages...)
		all.Consumed += res.Consumed
		all.Lines += res.Lines
		all.Skipped += res.Skipped
		all.Repeated += res.Repeated
		all.Tail = res.Tail
	}
	return all
}

func TestSarracenia_EverySplit(t *testing.T) {
	f := NewSarracenia(SarraceniaOptions{})
	for name, file := range map[string]string{
		"mixed": mixed, "plain tail": plain + "\n" + plain, "repeats": python + "\n" + plain + "\n" + python + "\n" + python, "python tail": python, "retry tail": retry,
	} {
		t.Run(name, func(t *testing.T) {
			data := []byte(file)
			want := f.Decode(data, Position{Seen: new(Seen)})
			var sizes []int
			for i := range len(data) {
				if got := decodePieces(f, data, i); !reflect.DeepEqual(got, want) {
					t.Fatalf("split at %d:\n got %+v\nwant %+v", i, got, want)
				}
				sizes = append(sizes, i)
			}
			if got := decodePieces(f, data, sizes...); !reflect.DeepEqual(got, want) {
				t.Errorf("byte by byte:\n got %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestSarracenia_Tail(t *testing.T) {
	tests := []struct {
		name, rest, reason, body string
	}{
		{"none", "", "none", ""},
		{"blank", " \t\r", "none", ""},
		{"whole", plain, "", plain},
		{"whole with CR", plain + "\r", "", plain + "\r"},
		{"whole retry record", retry, "", "20261130073051.93 file: a/b"},
		{"retry record that is done", `["v02.post.a", {"_retry_tag_": "done"}, "x"]`, "none", ""},
		{"half", plain[:40], ReasonTornLastLine, plain[:40]},
		{"inside a letter", "{\"x\xc3", ReasonTornLastLine, "{\"x\xc3"},
		{"NULs inside", "{\x00\x00}", ReasonTornLastLine, "{\x00\x00}"},
		{"whole but useless", "{}", ReasonTornLastLine, "{}"},
		{"NULs only", "\x00\x00 \x00", ReasonNulOnly, "\x00\x00 \x00"},
		{"long", strings.Repeat("x", 201), ReasonTooLong, strings.Repeat("x", 201)},
	}
	f := NewSarracenia(SarraceniaOptions{MaxLine: 200})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			res := f.Decode([]byte("junk\n"+test.rest), Position{Line: 6})
			if res.Consumed != 5 || res.Lines != 1 || len(res.Messages) != 1 || res.Messages[0].Line != 7 {
				t.Fatalf("before the tail: %+v", res)
			}
			if test.reason == "none" {
				if res.Tail != nil {
					t.Fatalf("tail %+v, want none", res.Tail)
				}
				return
			}
			if res.Tail == nil || res.Tail.Reason != test.reason || string(res.Tail.Body) != test.body || res.Tail.Line != 8 {
				t.Errorf("got %+v, want reason %q", res.Tail, test.reason)
			}
		})
	}
}

func TestSarracenia_BytesUntouched(t *testing.T) {
	const odd = "\t{\"pubTime\" :\"20261130T070000\",\"baseUrl\":\"\",\"relPath\":\"x/\\u00e9\xc3\xa9\\/y\" , \"n\":1e9999,\"n\":-0.10e+05, " +
		"\"l\\udce9\":\"\\udce9\\ud83c\\udf00\",\"\":[ ] }"
	for _, end := range []string{"", "\n"} {
		res := decodeFile(NewSarracenia(SarraceniaOptions{}), []byte(odd+end))
		if len(res.Messages) != 1 || string(res.Messages[0].Body) != odd+end {
			t.Errorf("got %+v, want a body of %q", res.Messages, odd+end)
		}
	}
}

func TestSarracenia_DeadLettersKeepRawBytes(t *testing.T) {
	// Every line is refused, so that their bodies make up the file.
	file := "\uFEFF{\r\n\x00\x00\n\x00a\x00 b\x00\r\n{}\n[ ]\n\xff\xfe\n" + plain + "x\r\n"
	res := NewSarracenia(SarraceniaOptions{}).Decode([]byte(file), Position{})
	var bodies []byte
	for _, m := range res.Messages {
		if !m.Dead() {
			t.Errorf("line %d was accepted", m.Line)
		}
		bodies = append(bodies, m.Body...)
	}
	if string(bodies) != file {
		t.Errorf("got %q, want %q", bodies, file)
	}
}

func TestSarracenia_LongLine(t *testing.T) {
	record := strings.TrimSpace(plain)
	tests := []struct {
		name, line string
		max        int
		want       string
	}{
		{"as long as allowed", record, len(record), "1 message"},
		{"line end and NULs do not count", "\x00" + record + "\x00\r", len(record) + 2, "1 message"},
		{"one byte more", record, len(record) - 1, "1 too-long"},
		{"default", strings.Repeat("x", 16<<20+1), 0, "1 too-long"},
		{"just within the default", strings.Repeat("x", 16<<20), 0, "1 not-json"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := NewSarracenia(SarraceniaOptions{MaxLine: test.max})
			data := []byte(test.line + "\n")
			var res Result
			allocated := allocatedBytes(func() { res = f.Decode(data, Position{}) })
			if s := summary(res.Messages); len(s) != 1 || s[0] != test.want {
				t.Errorf("got %q, want %q", s, test.want)
			}
			if limit := uint64(len(data) + len(data)/4 + 1<<16); allocated > limit {
				t.Errorf("allocated %d bytes, want at most %d: one copy", allocated, limit)
			}
		})
	}
}

// allocatedBytes measures what f allocates.
func allocatedBytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// threadTime is how much CPU time this thread has used, whatever else the machine does.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

func TestSarracenia_JunkIsLinear(t *testing.T) {
	// More stack than this ends the process.
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f := NewSarracenia(SarraceniaOptions{})
	junk := func(lines int) []byte { return bytes.Repeat([]byte("{'not': json}\n"), lines) }
	fastest := func(data []byte) time.Duration {
		best := time.Hour
		for range 5 {
			start := threadTime(t)
			res := f.Decode(data, Position{})
			best = min(best, threadTime(t)-start)
			if got, want := len(res.Messages), bytes.Count(data, []byte("\n")); got != want {
				t.Fatalf("%d dead letters, want %d", got, want)
			}
		}
		return best
	}
	// Linear is 100 times, and some more for fresh memory; quadratic is 10,000.
	few, many := fastest(junk(1000)), fastest(junk(100_000))
	if many > 2000*few {
		t.Errorf("100 times the junk took %v instead of %v", many, few)
	}
}

func TestSarracenia_Depth(t *testing.T) {
	nested := func(depth int) string {
		n := depth - 1 // the record itself counts
		return strings.TrimSuffix(strings.TrimSpace(plain), "}") + `, "x": ` +
			strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
	}
	tests := []struct {
		name, line string
		max        int
		reason     string
	}{
		{"200", nested(200), 0, ""},
		{"default", nested(512), 0, ""},
		{"beyond the default", nested(513), 0, ReasonTooDeep},
		{"as allowed", nested(3), 3, ""},
		{"one more", nested(4), 3, ReasonTooDeep},
		{"1 MiB of arrays", strings.Repeat("[", 1<<20), 0, ReasonTooDeep},
		{"1 MiB of objects", strings.Repeat(`{"a":`, 1<<20/5), 0, ReasonTooDeep},
		{"1 MiB of arrays, a million allowed", strings.Repeat("[", 1<<20), 1 << 30, ReasonNotJSON},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := NewSarracenia(SarraceniaOptions{MaxDepth: test.max})
			res := f.Decode([]byte(test.line+"\n"), Position{})
			if len(res.Messages) != 1 || res.Messages[0].Reason != test.reason {
				t.Errorf("got %q, want %q", summary(res.Messages), test.reason)
			}
		})
	}
}

func TestSarracenia_Fields(t *testing.T) {
	var many strings.Builder
	many.WriteString(strings.TrimSuffix(strings.TrimSpace(plain), "}"))
	for i := range maxFields {
		fmt.Fprintf(&many, `,"f%d":0`, i)
	}
	many.WriteString("}")
	const time, url, path = `"pubTime": "20261130T070000"`, `"baseUrl": "x"`, `"relPath": "a/b"`
	tests := []struct {
		name, record, reason string
	}{
		{"all", `{` + time + `,` + url + `,` + path + `}`, ""},
		{"names with escapes", `{"pub\u0054ime": "20261130T070000",` + url + `,` + path + `}`, ""},
		{"last of a name counts", `{"pubTime": 1,` + url + `,` + path + `,` + time + `}`, ""},
		{"last of a name counts when bad", `{` + time + `,` + url + `,` + path + `,"relPath": null}`, "wrong-type-relPath"},
		{"no such day", `{"pubTime": "20260231T070000",` + url + `,` + path + `}`, ""},
		{"bad time", `{"pubTime": "20261130t070000",` + url + `,` + path + `}`, ReasonBadPubTime},
		{"too many", many.String(), ReasonTooManyFields},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if m := decodeOne(t, SarraceniaOptions{}, test.record); m.Reason != test.reason {
				t.Errorf("reason %q, want %q", m.Reason, test.reason)
			}
		})
	}
}

// decodeOne decodes a file of one line.
func decodeOne(t testing.TB, opts SarraceniaOptions, line string) queue.Message {
	t.Helper()
	res := NewSarracenia(opts).Decode([]byte(line+"\n"), Position{})
	if len(res.Messages) != 1 {
		t.Fatalf("%d messages from one line, want 1: %q", len(res.Messages), line)
	}
	return res.Messages[0]
}

func TestSarracenia_WireFormat(t *testing.T) {
	tests := []struct {
		name, prefix, field, contentType, reason string
	}{
		{"default", "", ``, "application/json", ""},
		{"by prefix", "v02.post", ``, "text/plain", ""},
		{"own prefix", "abc", ``, "application/json", ""},
		{"record before prefix", "v02.post", `"_format": "v03",`, "application/json", ""},
		{"by record", "v03", `"_format": "v02",`, "text/plain", ""},
		{"wis", "v03", `"_format": "wis",`, "application/geo+json", ""},
		{"unknown", "v03", `"_format": "v04",`, "", ReasonUnknownFormat},
		{"no string", "v03", `"_format": 3,`, "", ReasonUnknownFormat},
	}
	for _, test := range tests {
		for _, line := range []string{plain, python} {
			t.Run(test.name, func(t *testing.T) {
				m := decodeOne(t, SarraceniaOptions{TopicPrefix: test.prefix}, strings.Replace(line, "{", "{"+test.field, 1))
				if m.ContentType != test.contentType || m.Reason != test.reason {
					t.Errorf("got %q %q, want %q %q", m.ContentType, m.Reason, test.contentType, test.reason)
				}
			})
		}
	}
}
