package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"spoolfs/queue"
)

// corpusCase is an expected.json of testdata/corpus, whose README explains it.
type corpusCase struct {
	Case   string
	File   string
	Config struct {
		Exchange    string
		TopicPrefix string `json:"post_topicPrefix"`
		Split       int    `json:"post_exchangeSplit"`
	} `json:"assume_config"`
	Messages    []corpusMessage
	DeadLetters []corpusRefusal `json:"dead_letters"`
	Skipped     []corpusRefusal
}

type corpusMessage struct {
	Line       uint32
	Exchange   string
	RoutingKey string `json:"routing_key"`
	Properties struct {
		ContentType     string            `json:"content_type"`
		ContentEncoding string            `json:"content_encoding"`
		Headers         map[string]string // nil: none; empty: an empty table
	}
	Body       *string
	BodySHA256 string `json:"body_sha256"`
	BodyLen    int    `json:"body_len"`
}

type corpusRefusal struct {
	Line   uint32
	Reason string
}

// corpusDeviations are the cases in which we do something else than the corpus
// expects, and why.
var corpusDeviations = map[string]func(*corpusCase){
	// The id of a wis message was random.
	"15-py-wis-diskqueue": func(c *corpusCase) {
		id := wisID(queue.FileID{}.MessageID(1))
		*c.Messages[0].Body = strings.Replace(*c.Messages[0].Body, "00000000-0000-4000-8000-000000000000", id, 1)
	},
	// sr3 sends no link header for a link, so that receivers cannot make it; the
	// case recommends to add it.
	"14-py-v02-diskqueue": func(c *corpusCase) {
		c.Messages[4].Properties.Headers["link"] = "a.txt"
	},
}

func TestSarracenia_Corpus(t *testing.T) {
	dirs, err := filepath.Glob("testdata/corpus/*/expected.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, path := range dirs {
		c, data := loadCase(t, filepath.Dir(path))
		t.Run(c.Case, func(t *testing.T) {
			f := NewSarracenia(SarraceniaOptions{TopicPrefix: c.Config.TopicPrefix})
			checkCase(t, c, decodeFile(f, data))
		})
	}
}

func loadCase(t testing.TB, dir string) (*corpusCase, []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := new(corpusCase)
	if err := json.Unmarshal(text, c); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	if deviate := corpusDeviations[c.Case]; deviate != nil {
		deviate(c)
	}
	data, err := os.ReadFile(filepath.Join(dir, c.File))
	if err != nil {
		t.Fatal(err)
	}
	return c, data
}

// decodeFile decodes a whole file, its torn end included.
func decodeFile(f Format, data []byte) Result {
	res := f.Decode(data, Position{Seen: new(Seen)})
	if res.Tail != nil {
		res.Messages = append(res.Messages, *res.Tail)
	}
	return res
}

func checkCase(t *testing.T, c *corpusCase, res Result) {
	t.Helper()
	if got, want := res.Skipped, len(c.Skipped); got != want {
		t.Errorf("skipped %d lines, want %d", got, want)
	}
	var refused []corpusRefusal
	var messages []queue.Message
	for _, m := range res.Messages {
		if m.Dead() {
			refused = append(refused, corpusRefusal{m.Line, m.Reason})
		} else {
			messages = append(messages, m)
		}
	}
	if !slices.Equal(refused, c.DeadLetters) {
		t.Errorf("dead letters:\n got %v\nwant %v", refused, c.DeadLetters)
	}
	if got, want := len(messages), len(c.Messages); got != want {
		t.Fatalf("%d messages, want %d", got, want)
	}
	for i, want := range c.Messages {
		checkMessage(t, c, messages[i], want)
	}
}

func checkMessage(t *testing.T, c *corpusCase, got queue.Message, want corpusMessage) {
	t.Helper()
	if got.Line != want.Line {
		t.Fatalf("line %d, want %d", got.Line, want.Line)
	}
	if key := routingKey(c.Config.TopicPrefix, got); key != want.RoutingKey {
		t.Errorf("line %d: key\n got %q\nwant %q", got.Line, key, want.RoutingKey)
	}
	if got.ContentType != want.Properties.ContentType || got.ContentEncoding != want.Properties.ContentEncoding {
		t.Errorf("line %d: content %q %q, want %v", got.Line, got.ContentType, got.ContentEncoding, want.Properties)
	}
	if headers := headerMap(got); (headers == nil) != (want.Properties.Headers == nil) ||
		!maps.Equal(headers, want.Properties.Headers) {
		t.Errorf("line %d: headers\n got %v\nwant %v", got.Line, headers, want.Properties.Headers)
	}
	if !exchangeAgrees(c, &got, want.Exchange) {
		t.Errorf("line %d: exchange %q, want %q", got.Line, got.Exchange, want.Exchange)
	}
	checkBody(t, got, want)
}

func checkBody(t *testing.T, got queue.Message, want corpusMessage) {
	t.Helper()
	if want.Body != nil {
		if string(got.Body) != *want.Body {
			t.Errorf("line %d: body\n got %q\nwant %q", got.Line, got.Body, *want.Body)
		}
		return
	}
	sum := sha256.Sum256(got.Body)
	if hex.EncodeToString(sum[:]) != want.BodySHA256 || len(got.Body) != want.BodyLen {
		t.Errorf("line %d: body of %d bytes, want %d", got.Line, len(got.Body), want.BodyLen)
	}
}

// exchangeAgrees compares the exchange that a record names with the one where
// its message went. If it names none, the configuration decided.
func exchangeAgrees(c *corpusCase, m *queue.Message, want string) bool {
	switch {
	case m.Exchange != "":
		return m.Exchange == want
	case c.Config.Split > 0:
		return want == fmt.Sprintf("%s%02d", c.Config.Exchange, SplitCode(m)%c.Config.Split)
	}
	return want == c.Config.Exchange
}

// routingKey joins prefix and words as the publisher does: whole components up
// to 255 bytes, and none from the first that is not UTF-8.
func routingKey(prefix string, m queue.Message) string {
	if m.HasKey {
		return m.Key
	}
	key := prefix
	for _, word := range m.Words {
		if !utf8.ValidString(word) || len(key)+1+len(word) > 255 {
			break
		}
		key += "." + word
	}
	return key
}

func headerMap(m queue.Message) map[string]string {
	if m.Headers == nil {
		return nil
	}
	headers := make(map[string]string)
	for _, h := range m.Headers {
		headers[h.Name] = h.Value
	}
	return headers
}
